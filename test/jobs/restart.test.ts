import assert from 'node:assert/strict';
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, beforeEach, test } from 'node:test';
import { sql } from 'kysely';
import { enqueue, enqueueAdvance } from '../../src/database/queue.ts';
import { loadInstance } from '../../src/instances/instance.ts';
import { advance, STEPS } from '../../src/jobs/advance.ts';
import { reconcile } from '../../src/jobs/reconcile.ts';
import { Bench, type User } from './bench.ts';

let bench: Bench;
let alice: User;
before(async () => {
  bench = await Bench.open();
  alice = await bench.user('alice');
});
after(() => bench[Symbol.asyncDispose]());
beforeEach(() => bench.stopWorker());

const MAKE = 'echo 1 > "$out/1.txt"; mkdir "$out/sub"; echo 22 > "$out/sub/2,.txt"';

test('every step, run twice from what it saw before a crash, changes nothing more', async () => {
  const context = bench.context();
  const id = await bench.start(await bench.plugin('pl-twice', 'fs', MAKE), alice);
  const child = await bench.start(await bench.plugin('pl-child', 'ds', 'true'), alice, { previous_id: id });
  for (const status of ['scheduled', 'started', 'registeringFiles'] as const) {
    await bench.advanceUntil(context, id, status);
    const seen = await loadInstance(bench.services.database, id);
    assert.ok(seen);
    await bench.advanceUntil(
      context,
      id,
      status === 'scheduled' ? 'started' : status === 'started' ? 'registeringFiles' : 'finishedSuccessfully',
    );
    const row = await bench.instance(id);
    await STEPS[status]?.(context, seen);
    assert.deepEqual(await bench.instance(id), row, `the step of ${status} again`);
  }
  assert.deepEqual(await bench.outputs(id), { '1.txt': 2, 'sub/2.txt': 3 });
  const { rows } = await sql<{
    key: string;
  }>`select key from graphile_worker.jobs where key = ${`advance:${child}`}`.execute(bench.services.database);
  assert.equal(rows.length, 1, 'the child is enqueued once');
  await context.engines.close();
});

test('registration that was cut off before its rows were committed finds the names that it gave', async () => {
  const context = bench.context();
  const id = await bench.start(await bench.plugin('pl-cut', 'fs', MAKE), alice);
  await bench.advanceUntil(context, id, 'registeringFiles');
  const { database } = bench.services;
  await bench.execute('alter table file add constraint cut check (false) not valid');
  await assert.rejects(advance(context, id), /cut/);
  assert.equal(bench.exists(`${await bench.outputPath(id)}/sub/2.txt`), true, 'renamed already');
  await bench.execute('alter table file drop constraint cut');
  await advance(context, id);
  assert.equal(await bench.status(id), 'finishedSuccessfully');
  assert.deepEqual(await bench.outputs(id), { '1.txt': 2, 'sub/2.txt': 3 });
  assert.equal(
    (await database.selectFrom('compute_cleanup').select('id').where('plugin_instance_id', '=', id).execute()).length,
    1,
  );
  await context.engines.close();
});

test('what a dead process was at is taken over: its locked jobs, and the programs it watched', async () => {
  const other = await bench.anotherProcess();
  const { database } = bench.services;
  const plugin = await bench.plugin('pl-wait', 'fs', 'while [ ! -e "$out/go" ]; do sleep 0.05; done');
  const watched = await bench.start(plugin, alice);
  const locked = await bench.start(await bench.plugin('pl-locked', 'fs', 'true'), alice);
  const context = bench.context();
  await bench.advanceUntil(context, watched, 'started');
  // As the other process would have left them.
  await other.process.recordWorkers(['worker-of-the-dead']);
  await database
    .updateTable('plugin_instance')
    .set({ watched_by: other.process.id })
    .where('id', '=', watched)
    .execute();
  await sql`delete from graphile_worker._private_jobs where key = ${`advance:${watched}`}`.execute(database);
  await sql`update graphile_worker._private_jobs set locked_by = 'worker-of-the-dead', locked_at = now(), attempts = 1
    where key = ${`advance:${locked}`}`.execute(database);
  await reconcile(context);
  assert.equal((await bench.instance(watched))?.watched_by, other.process.id, 'nothing is taken from the living');
  await bench.terminate(other);
  await bench.startWorker();
  await bench.touch(`${await bench.outputPath(watched)}/go`);
  assert.equal((await bench.ended(watched)).status, 'finishedSuccessfully');
  assert.equal((await bench.ended(locked)).status, 'finishedSuccessfully');
  await context.engines.close();
});

test('a job that was cut off at its last try gets one more, one that was enqueued again meanwhile is forgotten', async () => {
  const other = await bench.anotherProcess();
  const { database } = bench.services;
  await other.process.recordWorkers(['worker-at-its-last']);
  const [tried, superseded] = [{ computeResourceId: 1_000_001 }, { computeResourceId: 1_000_002 }];
  for (const payload of [tried, superseded]) await enqueue(database, 'admit', payload);
  await sql`update graphile_worker._private_jobs set locked_by = 'worker-at-its-last', locked_at = now(),
    attempts = max_attempts where key in ('admit:1000001', 'admit:1000002')`.execute(database);
  await enqueue(database, 'admit', superseded);
  await bench.terminate(other);
  const context = bench.context();
  await reconcile(context);
  const { rows } = await sql<{ key: string; tries: number }>`
    select key, max_attempts - attempts as tries from graphile_worker.jobs
    where key is null or key like 'admit:1000%' order by key nulls first`.execute(database);
  assert.deepEqual(rows, [
    { key: 'admit:1000001', tries: 1 },
    { key: 'admit:1000002', tries: 6 },
  ]);
  await context.engines.close();
});

test('an instance that nobody works on is found; one that waits for a running parent is left alone', async () => {
  const { database } = bench.services;
  const id = await bench.start(await bench.plugin('pl-lost', 'fs', 'true'), alice);
  const child = await bench.start(await bench.plugin('pl-lost-child', 'ds', 'true'), alice, { previous_id: id });
  await database.updateTable('plugin_instance').set({ admitted: true }).where('id', '=', id).execute();
  await sql`delete from graphile_worker._private_jobs`.execute(database);
  const context = bench.context();
  await reconcile(context);
  const { rows } = await sql<{ key: string }>`select key from graphile_worker.jobs
    where key in (${`advance:${id}`}, ${`advance:${child}`})`.execute(database);
  assert.deepEqual(rows, [{ key: `advance:${id}` }]);
  await bench.startWorker();
  assert.equal((await bench.ended(child)).status, 'finishedSuccessfully');
  await context.engines.close();
});

test('a job that vanishes is run once more, and the second time it fails with CODE18', async () => {
  await bench.startWorker();
  const id = await bench.start(await bench.plugin('pl-vanish', 'fs', 'echo $$ > "$out/pid"; exec sleep 60'), alice);
  const path = await bench.outputPath(id);
  for (const resubmissions of [0, 1]) {
    await bench.eventually(async () => (await bench.instance(id))?.resubmissions === resubmissions);
    const pid = await bench.pid(path);
    await rm(join(bench.services.config.data, 'jobs', `chris-jid-${id}`), { recursive: true });
    await rm(join(bench.local(path), 'pid'));
    process.kill(pid);
    await bench.eventually(() => !bench.isRunning(pid));
    await enqueueAdvance(bench.services.database, [id]);
  }
  const end = await bench.ended(id);
  assert.deepEqual([end.status, end.error_code], ['cancelled', 'CODE18']);
});

test('a step that throws what it should not is given up with CODE19', async () => {
  const id = await bench.start(await bench.plugin('pl-throw', 'fs', MAKE), alice);
  await bench.execute('alter table file add constraint never check (false) not valid');
  await bench.startWorker();
  await bench.ended(id, ['registeringFiles']);
  await bench.hurry('advance');
  const end = await bench.ended(id);
  await bench.execute('alter table file drop constraint never');
  assert.deepEqual([end.status, end.error_code], ['cancelled', 'CODE19']);
  await bench.cleanedUp();
});
