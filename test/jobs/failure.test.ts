import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { Bench, type User } from './bench.ts';

let bench: Bench;
let alice: User;
before(async () => {
  bench = await Bench.open();
  await bench.startWorker();
  alice = await bench.user('alice');
});
after(() => bench[Symbol.asyncDispose]());

test('a program that fails keeps its outputs and log; nothing below it is ever run', async () => {
  const failing = await bench.plugin('pl-fail', 'fs', 'echo part > "$out/part.txt"; echo went wrong; exit 3');
  const child = await bench.plugin('pl-child', 'ds', 'echo ran > "$out/ran.txt"');
  const join = await bench.builtin('pl-topologicalcopy');
  const root = await bench.start(failing, alice);
  const kid = await bench.start(child, alice, { previous_id: root });
  const grandchild = await bench.start(child, alice, { previous_id: kid });
  const joined = await bench.start(join, alice, { previous_id: kid, plugininstances: `${kid},${root}` });
  const end = await bench.ended(root);
  assert.deepEqual([end.status, end.error_code], ['finishedWithError', '']);
  assert.match(end.job_logs, /went wrong/);
  assert.deepEqual(await bench.outputs(root), { 'part.txt': 5 });
  for (const id of [kid, grandchild, joined]) {
    const row = await bench.ended(id);
    assert.deepEqual([row.status, row.raw, row.error_code], ['cancelled', '', '']);
  }
  const late = await bench.start(child, alice, { previous_id: root });
  assert.equal(await bench.status(late), 'cancelled', 'born cancelled');
});

test('a symbolic link out of the output folder cancels with CODE17 and a reason, and the outputs go', async () => {
  const plugin = await bench.plugin('pl-escape', 'fs', 'echo x > "$out/x.txt"; ln -s /etc/passwd "$out/passwords"');
  const id = await bench.start(plugin, alice);
  const end = await bench.ended(id);
  assert.deepEqual([end.status, end.error_code, end.pulled], ['cancelled', 'CODE17', true]);
  assert.match(end.job_logs, /CODE17.*symbolic link/);
  await bench.cleanedUp();
  assert.deepEqual(await bench.outputs(id), {});
  assert.equal(bench.exists(`${await bench.outputPath(id)}/x.txt`), false);
});

test('outputs whose clean names clash with a folder, or are too long, cancel with a reason; others are not hurt', async () => {
  const clash = await bench.plugin('pl-clash', 'fs', 'echo 1 > "$out/a"; mkdir "$out/a,"; echo 2 > "$out/a,/b"');
  const name = 'n'.repeat(200);
  const long = await bench.plugin(
    'pl-deep',
    'fs',
    `mkdir -p "$out/${`${name}/`.repeat(5)}"; echo 1 > "$out/${`${name}/`.repeat(5)}x"`,
  );
  const clashed = await bench.ended(await bench.start(clash, alice));
  assert.deepEqual([clashed.status, clashed.error_code], ['cancelled', 'CODE07']);
  assert.match(clashed.job_logs, /a,\/b.*renamed/);
  const deep = await bench.ended(await bench.start(long, alice));
  assert.deepEqual([deep.status, deep.error_code], ['cancelled', 'CODE06']);
  assert.match(deep.job_logs, /longer than 1024/);
});

test('a program that is not there is refused at once, with the reason in the log', async () => {
  const plugin = await bench.plugin('pl-missing', 'fs', 'true');
  await bench.removeProgram('pl-missing');
  const end = await bench.ended(await bench.start(plugin, alice));
  assert.deepEqual([end.status, end.error_code, end.submission_failures], ['cancelled', 'CODE01', 0]);
  assert.match(end.job_logs, /CODE01.*not there/);
});

test('the time limit of the compute resource ends a job with CODE13, also its process', async () => {
  const { database } = bench.services;
  const plugin = await bench.plugin('pl-slow', 'fs', 'echo $$ > "$out/pid"; exec sleep 60');
  const limit = (seconds: number) =>
    database.updateTable('compute_resource').set({ max_job_exec_seconds: seconds }).execute();
  await limit(1);
  const id = await bench.start(plugin, alice);
  const path = await bench.outputPath(id);
  const pid = await bench.pid(path);
  const end = await bench.ended(id);
  await limit(-1);
  assert.deepEqual([end.status, end.error_code], ['cancelled', 'CODE13']);
  await bench.eventually(() => !bench.isRunning(pid));
});

test('a job whose compute resource is removed is cancelled with a reason', async () => {
  const { database } = bench.services;
  const plugin = await bench.plugin('pl-orphan', 'fs', 'echo $$ > "$out/pid"; exec sleep 60');
  const id = await bench.start(plugin, alice);
  const pid = await bench.pid(await bench.outputPath(id));
  await bench.ended(id, ['started']);
  await database.updateTable('plugin_instance').set({ compute_resource_id: null }).where('id', '=', id).execute();
  await bench.advance(id);
  const end = await bench.ended(id);
  assert.deepEqual([end.status, end.error_code], ['cancelled', 'CODE01']);
  assert.match(end.job_logs, /removed/);
  process.kill(pid);
});

test('a service that does not answer is tried for a while, then the instance is cancelled', async () => {
  const { database } = bench.services;
  const plugin = await bench.plugin('pl-far', 'fs', 'true');
  const { id: nowhere } = await database
    .insertInto('compute_resource')
    .values({ name: 'nowhere', compute_url: 'http://127.0.0.1:9/api/v1/', described_at: new Date().toISOString() })
    .returning('id')
    .executeTakeFirstOrThrow();
  await database
    .insertInto('plugin_compute_resource')
    .values({ plugin_id: plugin.id, compute_resource_id: nowhere })
    .execute();
  const id = await bench.start(plugin, alice, { compute_resource_name: 'nowhere' });
  await bench.eventually(async () => ((await bench.instance(id))?.submission_failures ?? 0) >= 2);
  assert.equal(await bench.status(id), 'scheduled');
  await database.updateTable('plugin_instance').set({ submission_failures: 5 }).where('id', '=', id).execute();
  const end = await bench.ended(id);
  assert.deepEqual([end.status, end.error_code], ['cancelled', 'CODE01']);
});
