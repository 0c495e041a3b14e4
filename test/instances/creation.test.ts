import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import type { Credentials } from '../helpers/server.ts';
import { type Bench, openBench, type Plugin, parameter } from './bench.ts';

let bench: Bench;
let alice: Credentials;
let bob: Credentials;
let fs: Plugin;
let ds: Plugin;
let ts: Plugin;
/** Alice's root instance. */
let root: number;

before(async () => {
  bench = await openBench();
  [alice, bob] = [await bench.user('alice'), await bench.user('bob')];
  fs = await bench.plugin('pl-root', 'fs');
  const optional = [
    parameter('word', 'str', { optional: true, default: 'hello' }),
    parameter('count', 'int', { optional: true, default: 3 }),
    parameter('ratio', 'float', { optional: true, default: 0.5 }),
    parameter('quick', 'bool', { optional: true, default: false }),
  ];
  const limits = { min_cpu_limit: '500m', max_cpu_limit: '2000m', min_memory_limit: '100Mi', max_memory_limit: '1Gi' };
  ds = await bench.plugin('pl-child', 'ds', { parameters: optional, ...limits, max_gpu_limit: 2 }, true);
  ts = await bench.plugin('pl-join', 'ts', {
    parameters: [
      parameter('plugininstances', 'str', { optional: true, default: '' }),
      parameter('filter', 'str', { optional: true, default: '' }),
    ],
  });
  root = Number((await bench.run(fs, alice, { title: 'Root' })).json.id);
});
after(() => bench?.close());

async function refused(plugin: Plugin, json: object, field: string, as: Credentials = alice): Promise<void> {
  const answer = await bench.run(plugin, as, { ...json });
  assert.deepEqual([answer.status, Object.keys(answer.json)], [400, [field]], JSON.stringify(json));
}

async function values(plugin: Plugin, json: object): Promise<Record<string, unknown>> {
  const made = await bench.run(plugin, alice, { ...json });
  assert.equal(made.status, 201, made.text);
  const list = await bench.request('GET', `${made.json.parameters}?limit=50`, { as: alice });
  const results: unknown = list.json.results;
  assert.ok(Array.isArray(results));
  return Object.fromEntries(results.map((one) => [one.param_name, one.value]));
}

test('nobody runs a plugin without signing in, and nobody one that is not there', async () => {
  assert.equal((await bench.request('POST', fs.instances, { json: {} })).status, 401);
  assert.equal(
    (await bench.request('POST', '/api/v1/plugins/99999999/instances/', { as: alice, json: {} })).status,
    404,
  );
  const malformed = await bench.request('POST', '/api/v1/plugins/99999999/instances/', {
    as: alice,
    body: '{',
    headers: { 'content-type': 'application/json' },
  });
  assert.equal(malformed.status, 400);
});

test('a parent must be an instance in a feed that the caller owns or shares', async () => {
  for (const previous_id of [undefined, null, '', 'x', 0, 99999999, -1, 1.5, true, [root]])
    await refused(ds, { previous_id }, 'previous_id');
  await refused(ds, { previous_id: root }, 'previous_id', bob);
  await refused(ds, { previous_id: root }, 'previous_id', bench.admin);
});

test('a refused creation leaves nothing behind', async () => {
  const count = async () => (await bench.request('GET', '/api/v1/plugins/instances/', { as: bench.admin })).json.count;
  const before = await count();
  const needy = await bench.plugin('pl-needy', 'fs', { parameters: [parameter('where', 'path')] });
  await refused(needy, { where: 'home/nobody/uploads' }, 'value');
  assert.equal(await count(), before);
  assert.equal((await bench.request('GET', '/api/v1/', { as: alice })).json.count, 1);
});

test('limits stay within what the plugin allows', async () => {
  const previous_id = root;
  for (const [field, wrong] of [
    ['cpu_limit', [499, '2001m', 'x', '1500', '', 1000.5, true]],
    ['memory_limit', ['99Mi', '2Gi', '300', '300M', 0.5]],
    ['number_of_workers', [0, 'x', 1.5]],
    ['gpu_limit', [3, -1]],
  ] as const) {
    for (const value of wrong) await refused(ds, { previous_id, [field]: value }, field);
  }
  const given = { cpu_limit: '1500m', memory_limit: '1Gi', number_of_workers: 2, gpu_limit: null };
  const { json } = await bench.run(ds, alice, { previous_id, ...given });
  assert.deepEqual([json.cpu_limit, json.memory_limit, json.number_of_workers, json.gpu_limit], [1500, 1024, 2, 0]);
});

test('a compute resource must be one of the plugin', async () => {
  for (const name of ['', 'nowhere'])
    await refused(ds, { previous_id: root, compute_resource_name: name }, 'compute_resource_name');
  await refused(fs, { compute_resource_name: bench.resources[1] }, 'compute_resource_name');
  const there = await bench.run(ds, alice, { previous_id: root, compute_resource_name: bench.resources[1] });
  assert.equal(there.json.compute_resource_name, bench.resources[1]);
  const anywhere = await bench.run(ds, alice, { previous_id: root });
  assert.equal(anywhere.json.compute_resource_name, bench.resources[0]);
});

test('parameters are checked one by one', async () => {
  const strict = await bench.plugin('pl-strict', 'ds', {
    parameters: [parameter('word', 'str'), parameter('count', 'int')],
  });
  await refused(strict, { previous_id: root }, 'word');
  await refused(strict, { previous_id: root, word: '' }, 'count');
  for (const wrong of [
    { count: 'x' },
    { count: 1.5 },
    { count: 2 ** 31 },
    { count: null },
    { count: true },
    { word: null },
    { word: true },
    { word: 'x'.repeat(601) },
    { ratio: 'x' },
    { quick: null },
    { word: 'a\0b' },
  ]) {
    await refused(ds, { previous_id: root, ...wrong }, 'value');
  }
  assert.deepEqual(await values(ds, { previous_id: root }), {});
  const texts = { word: ' w ', count: '7', ratio: '1e3', quick: 'yes', unknown: 1 };
  assert.deepEqual(await values(ds, { previous_id: root, ...texts }), {
    word: 'w',
    count: 7,
    ratio: 1000,
    quick: true,
  });
});

test('an fs plugin starts a feed with a note and a folder', async () => {
  const made = await bench.run(fs, alice, { title: ' Study ', previous_id: root, status: 'cancelled' });
  assert.equal(made.status, 201);
  assert.ok(!('previous_id' in made.json));
  assert.equal(made.json.status, 'scheduled');
  const feed = (await bench.request('GET', String(made.json.feed), { as: alice })).json;
  assert.equal(feed.name, 'Study');
  assert.equal(feed.folder_path, `home/${alice.username}/feeds/feed_${feed.id}`);
  assert.equal(made.json.output_path, `${feed.folder_path}/pl-root_${made.json.id}/data`);
  assert.equal((await bench.request('GET', String(feed.note), { as: alice })).json.content, '');
  const untitled = await bench.run(fs, alice);
  assert.equal((await bench.request('GET', String(untitled.json.feed), { as: alice })).json.name, 'pl-root');
});

test('a child lies beside the outputs of its parent, wherever they are', async () => {
  const parent = (await bench.run(fs, alice)).json;
  const first = (await bench.run(ds, alice, { previous_id: parent.id })).json;
  const above = String(parent.output_path).replace(/\/data$/, '');
  assert.equal(first.output_path, `${above}/pl-child_${first.id}/data`);
  assert.equal(first.status, 'waiting');
  const moved = `${above}-moved`;
  const paths = await bench.database
    .selectFrom('folder')
    .select(['id', 'path'])
    .where('path', 'like', `${above}%`)
    .execute();
  for (const { id, path } of paths) {
    await bench.database
      .updateTable('folder')
      .set({ path: path.replace(above, moved) })
      .where('id', '=', id)
      .execute();
  }
  const second = (await bench.run(ds, alice, { previous_id: String(parent.id) })).json;
  assert.equal(second.output_path, `${moved}/pl-child_${second.id}/data`);
});

test("the parents' statuses decide how a child begins", async () => {
  for (const [parent, child] of [
    ['started', 'waiting'],
    ['finishedSuccessfully', 'scheduled'],
    ['finishedWithError', 'cancelled'],
    ['cancelled', 'cancelled'],
  ] as const) {
    const { json } = await bench.run(fs, alice);
    await bench.setStatus(json.id, parent);
    assert.equal((await bench.run(ds, alice, { previous_id: json.id })).json.status, child, parent);
  }
});

test('paths must lead to what the caller may read', async () => {
  const reader = await bench.plugin('pl-reader', 'fs', { parameters: [parameter('dir', 'path')] });
  const linker = await bench.plugin('pl-linker', 'fs', { parameters: [parameter('dir', 'unextpath')] });
  const own = `home/${alice.username}`;
  for (const plugin of [reader, linker]) {
    await refused(plugin, {}, 'dir');
    for (const dir of [
      '',
      null,
      12,
      'home',
      own,
      `${own}/feeds`,
      'etc/passwd',
      `${own}/none`,
      `${own}/uploads/../uploads`,
      `${own}/uploads,`,
      `home/${bob.username}/uploads`,
      `${own}/uploads,home/${bob.username}/uploads`,
      `${own}/shared.chrislink`,
      `${own}/public.chrislink`,
    ]) {
      await refused(plugin, { dir }, 'value');
    }
    assert.deepEqual(await values(plugin, { dir: ` /${own}/uploads/ ` }), { dir: `${own}/uploads` });
  }
  const theirs = await bench.run(reader, bench.admin, { dir: `${own}/uploads` });
  assert.equal(theirs.status, 201, 'administrators may read everything');
});

test('a ts plugin joins instances of one feed, its parent among them', async () => {
  const other = Number((await bench.run(fs, alice)).json.id);
  const child = Number((await bench.run(ds, alice, { previous_id: root })).json.id);
  await refused(ts, { plugininstances: String(root) }, 'previous_id');
  for (const plugininstances of [String(child), `${root},${other}`, `${root},99999999`, `${root},x`, `${root},,`]) {
    await refused(ts, { previous_id: root, plugininstances }, 'value');
  }
  const joined = { previous_id: root, plugininstances: `${child}, ${root},${child}`, filter: ' a , b$ ' };
  assert.deepEqual(await values(ts, joined), { plugininstances: `${child},${root},${child}`, filter: 'a,b$' });
  const parents = await bench.database
    .selectFrom('plugin_instance_parent as p')
    .innerJoin('plugin_instance as i', 'i.id', 'p.plugin_instance_id')
    .select(['p.parent_id', 'p.position'])
    .where('i.plugin_id', '=', ts.id)
    .orderBy('p.position')
    .execute();
  assert.deepEqual(parents, [
    { parent_id: child, position: 0 },
    { parent_id: root, position: 1 },
  ]);
});

test('the template of a plugin names its parameters', async () => {
  const list = await bench.request('GET', ds.instances, { as: bob });
  const names = [...String(JSON.stringify(list.json.template)).matchAll(/"name":"(\w+)"/g)].map((match) => match[1]);
  assert.deepEqual(names, [
    ...['title', 'compute_resource_name', 'previous_id', 'cpu_limit', 'memory_limit', 'number_of_workers', 'gpu_limit'],
    ...['word', 'count', 'ratio', 'quick'],
  ]);
  assert.equal(list.json.count, 0, 'only own instances are listed');
});
