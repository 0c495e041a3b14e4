import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { deleteInstancesOfPlugin } from '../../src/instances/deletion.ts';
import { Bench, type User } from './bench.ts';

let bench: Bench;
let alice: User;
before(async () => {
  bench = await Bench.open();
  await bench.startWorker();
  alice = await bench.user('alice');
});
after(() => bench[Symbol.asyncDispose]());

const MAKE = 'echo 1 > "$out/1.txt"';
const LONG = 'echo $$ > "$out/pid"; exec sleep 60';

async function gone(id: number): Promise<void> {
  await bench.eventually(async () => (await bench.instance(id)) === undefined);
}

test('deleting a running instance ends its job and removes it with all below, rows and bytes', async () => {
  const root = await bench.start(await bench.plugin('pl-root', 'fs', MAKE), alice);
  const long = await bench.start(await bench.plugin('pl-long', 'ds', LONG), alice, { previous_id: root });
  const kid = await bench.start(await bench.plugin('pl-kid', 'ds', MAKE), alice, { previous_id: long });
  const path = await bench.outputPath(long);
  const pid = await bench.pid(path);
  const answer = await bench.request('DELETE', `/api/v1/plugins/instances/${long}/`, { as: alice });
  assert.deepEqual([answer.status, answer.json.deletion_status], [202, 'pending']);
  await gone(long);
  await gone(kid);
  await bench.eventually(() => !bench.isRunning(pid));
  assert.equal(bench.exists(path.replace(/\/data$/, '')), false);
  const rows = await bench.services.database
    .selectFrom('folder')
    .select('path')
    .where('path', 'like', `${path.replace(/\/data$/, '')}%`)
    .execute();
  assert.deepEqual(rows, []);
  assert.deepEqual(await bench.outputs(root), { '1.txt': 2 });
  await bench.cleanedUp();
});

test('deleting a feed takes everything in it, and the links elsewhere that lead into it; sources stay', async () => {
  const source = await bench.put(alice, 'in/source.txt', 'source');
  const dircopy = await bench.builtin('pl-dircopy');
  const feed = await bench.start(dircopy, alice, { dir: source });
  const child = await bench.start(await bench.plugin('pl-child', 'ds', MAKE), alice, { previous_id: feed });
  await bench.ended(child);
  const linking = await bench.start(dircopy, alice, { dir: `${await bench.outputPath(child)}/1.txt` });
  await bench.ended(linking);
  const [[link = '']] = [Object.keys(await bench.outputs(linking))];
  const linkPath = `${await bench.outputPath(linking)}/${link}`;
  assert.equal(bench.exists(linkPath), true);
  const running = await bench.start(await bench.plugin('pl-long-too', 'ds', LONG), alice, { previous_id: feed });
  const pid = await bench.pid(await bench.outputPath(running));
  const path = await bench.outputPath(feed);
  const feedId = (await bench.instance(feed))?.feed_id;
  assert.equal((await bench.request('DELETE', `/api/v1/${feedId}/`, { as: alice })).status, 202);
  for (const id of [feed, child, running]) await gone(id);
  await bench.eventually(() => !bench.isRunning(pid));
  await bench.eventually(async () => (await bench.request('GET', `/api/v1/${feedId}/`, { as: alice })).status === 404);
  assert.equal(bench.exists(path.split('/').slice(0, 4).join('/')), false);
  assert.deepEqual(await bench.outputs(linking), {});
  assert.equal(bench.exists(linkPath), false);
  assert.equal(bench.read(source), 'source');
});

test('deleting a plugin takes its instances with all below at once, and their bytes soon', async () => {
  const plugin = await bench.plugin('pl-removed', 'fs', MAKE);
  const id = await bench.start(plugin, alice);
  const child = await bench.start(await bench.plugin('pl-below', 'ds', LONG), alice, { previous_id: id });
  const path = await bench.outputPath(id);
  const pid = await bench.pid(await bench.outputPath(child));
  const { database } = bench.services;
  const removed = await database
    .transaction()
    .execute((transaction) => deleteInstancesOfPlugin(transaction, plugin.id));
  assert.deepEqual(removed.sort(), [id, child]);
  assert.equal(await bench.instance(id), undefined);
  await bench.eventually(() => !bench.isRunning(pid));
  await bench.eventually(() => !bench.exists(path.replace(/\/data$/, '')));
  await bench.cleanedUp();
});

test('a deletion that keeps failing says so, and can be asked for again', async () => {
  const { database } = bench.services;
  const root = await bench.start(await bench.plugin('pl-stays', 'fs', MAKE), alice);
  const id = await bench.start(await bench.plugin('pl-stuck', 'ds', MAKE), alice, { previous_id: root });
  await bench.ended(id);
  await database.schema
    .createTable('holder')
    .addColumn('id', 'bigint', (column) => column.references('plugin_instance.id'))
    .execute();
  await bench.execute(`insert into holder values (${id})`);
  await bench.request('DELETE', `/api/v1/plugins/instances/${id}/`, { as: alice });
  await bench.hurry('deleteInstance');
  await bench.eventually(async () => (await bench.instance(id))?.deletion_status === 'failed');
  assert.match((await bench.instance(id))?.deletion_error ?? '', /holder/);
  assert.deepEqual(await bench.outputs(id), { '1.txt': 2 }, 'nothing is half deleted');
  assert.equal(bench.exists(`${await bench.outputPath(id)}/1.txt`), true);
  await database.schema.dropTable('holder').execute();
  await bench.request('DELETE', `/api/v1/plugins/instances/${id}/`, { as: alice });
  await gone(id);
});
