import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import type { Answer, Json, Options } from '../helpers/client.ts';
import type { Credentials } from '../helpers/server.ts';
import { type Bench, openBench, type Plugin, parameter } from './bench.ts';

let bench: Bench;
/** Owns the feed. */
let alice: Credentials & { readonly id: number };
/** The feed is shared with her; she runs something in it. */
let carol: Credentials & { readonly id: number };
let stranger: Credentials;
let fs: Plugin;
let ds: Plugin;
let root: Json;
let child: Json;
let grandchild: Json;

before(async () => {
  bench = await openBench();
  [alice, carol, stranger] = [await bench.user('alice'), await bench.user('carol'), await bench.user('stranger')];
  fs = await bench.plugin('pl-root', 'fs');
  const parameters = [parameter('word', 'str', { optional: true, default: '' })];
  ds = await bench.plugin('pl-child', 'ds', { parameters });
  root = (await bench.run(fs, alice, { title: 'Root' })).json;
  const feed_id = Number(root.feed_id);
  await bench.database.insertInto('feed_user_permission').values({ feed_id, account_id: carol.id }).execute();
  child = (await bench.run(ds, carol, { previous_id: root.id, title: 'Child', word: 'w' })).json;
  grandchild = (await bench.run(ds, alice, { previous_id: child.id, title: 'Grandchild' })).json;
});
after(() => bench?.close());

const get = (path: unknown, as?: Credentials): Promise<Answer> => bench.request('GET', String(path), as ? { as } : {});
const send = (method: string, path: unknown, options: Options): Promise<Answer> =>
  bench.request(method, String(path), options);

function listed(answer: Answer): readonly Json[] {
  assert.equal(answer.status, 200, answer.text);
  const { results } = answer.json;
  assert.ok(Array.isArray(results));
  return results;
}

const titles = (answer: Answer): string[] => listed(answer).map((one) => String(one.title));

test('strangers see and change nothing', async () => {
  for (const path of [child.url, child.descendants, child.parameters, child.splits, child.files]) {
    assert.equal((await get(path)).status, 401);
    assert.equal((await get(path, stranger)).status, 403);
    assert.equal((await get(path, alice)).status, 200, "the feed's owner");
    assert.equal((await get(path, carol)).status, 200, 'whoever made it');
    assert.equal((await get(path, bench.admin)).status, 200);
  }
  for (const [as, status] of [
    [undefined, 401],
    [stranger, 403],
  ] as const) {
    const options = { json: { title: 'x' }, ...(as && { as }) };
    assert.equal((await send('PUT', child.url, options)).status, status);
    assert.equal((await send('DELETE', child.url, options)).status, status);
  }
  assert.equal((await send('PUT', grandchild.url, { as: carol, json: { title: 'x' } })).status, 403, 'sharers');
  assert.equal((await send('DELETE', child.url, { as: alice })).status, 403, "the feed's owner may only cancel");
  assert.equal((await get('/api/v1/plugins/instances/99999999/', alice)).status, 404);
});

test('all that a list shows can be opened, and nothing else can', async () => {
  const everything = titles(await get('/api/v1/plugins/instances/?limit=1000', bench.admin)).length;
  assert.equal(everything, 3);
  for (const as of [undefined, stranger, alice, carol]) {
    const shown = listed(await get('/api/v1/plugins/instances/?limit=1000', as)).map(({ url }) => String(url));
    for (const { url } of [root, child, grandchild]) {
      assert.equal((await get(url, as)).status === 200, shown.includes(String(url)));
    }
  }
});

test('searches never show what the list does not', async () => {
  for (const filter of [`id=${child.id}`, `root_id=${root.id}`, `previous_id=${root.id}`, `feed_id=${root.feed_id}`]) {
    const path = `/api/v1/plugins/instances/search/?${filter}`;
    assert.deepEqual(titles(await get(path)), [], filter);
    assert.deepEqual(titles(await get(path, stranger)), [], filter);
    assert.ok(titles(await get(path, alice)).includes('Child'), filter);
  }
});

test('bad filter values are refused by name', async () => {
  for (const filter of ['feed_id', 'root_id', 'previous_id', 'plugin_id', 'workflow_id', 'status', 'min_start_date']) {
    const answer = await get(`/api/v1/plugins/instances/search/?${filter}=x`, alice);
    assert.deepEqual([answer.status, Object.keys(answer.json)], [400, [filter]]);
  }
});

test('filters combine', async () => {
  const search = async (query: string) => titles(await get(`/api/v1/plugins/instances/search/?${query}`, alice));
  assert.deepEqual(await search(`root_id=${child.id}`), ['Grandchild', 'Child']);
  assert.deepEqual(await search(`root_id=${root.id}&title=CHILD&owner_username=${carol.username}`), ['Child']);
  assert.deepEqual(await search(`previous_id=${root.id}`), ['Child']);
  assert.deepEqual(await search('plugin_type=fs'), ['Root']);
  assert.deepEqual(await search('plugin_name=CHILD&active=true&status=waiting'), ['Grandchild', 'Child']);
  assert.deepEqual(await search('active=false'), []);
  assert.deepEqual(await search('active=nonsense&plugin_name_exact=pl-root'), ['Root']);
  assert.deepEqual(await search('min_start_date=2000-01-01&max_end_date=2000-01-02'), []);
  assert.deepEqual(await search('workflow_id=1'), []);
  assert.deepEqual(await search('deletion_status=inactive&plugin_version=1.0&max_start_date=2999-01-01'), [
    'Grandchild',
    'Child',
    'Root',
  ]);
});

test('an instance shows where it stands', async () => {
  const { json } = await get(child.url, alice);
  assert.equal(json.previous, root.url);
  assert.equal(json.workflow, null);
  assert.ok(!('workflow_id' in json) && !('pipeline_id' in json));
  assert.deepEqual(JSON.parse(String(json.summary)), {
    pushPath: { status: false },
    pullPath: { status: false },
    compute: { submit: { status: false }, return: { status: false, job_status: '', job_logs: '' } },
  });
  assert.equal(json.raw, '');
  const descendants = await get(child.descendants, alice);
  assert.deepEqual(titles(descendants), ['Grandchild', 'Child']);
});

test('a parameter is shown in both forms under the address of its type', async () => {
  const [shown] = listed(await get(child.parameters, alice));
  assert.match(String(shown?.url), /\/api\/v1\/plugins\/string-parameter\/\d+\/$/);
  const { json } = await send('GET', shown?.url, { as: alice, headers: { accept: 'application/vnd.collection+json' } });
  const [item] = JSON.parse(JSON.stringify(json.collection?.items));
  const { parameters: _, ...rest } = { parameters: 0, ...item };
  assert.deepEqual(
    rest.data.filter((one: { name: string }) => ['param_name', 'value'].includes(one.name)),
    [
      { name: 'param_name', value: 'word' },
      { name: 'value', value: 'w' },
    ],
  );
  assert.deepEqual(
    rest.links.map((one: { rel: string }) => one.rel),
    ['plugin_inst', 'plugin_param'],
  );
  assert.equal(rest.href, shown?.url);
  const wrongType = String(shown?.url).replace('string-', 'integer-');
  assert.equal((await get(wrongType, alice)).status, 404);
  assert.equal((await get(shown?.url)).status, 401);
  assert.equal((await get(shown?.url, stranger)).status, 403);
});

test("the feed's instances are shown in short", async () => {
  const path = `/api/v1/${root.feed_id}/plugininstances/`;
  assert.equal((await get(path)).status, 401);
  assert.equal((await get('/api/v1/99999999/plugininstances/', alice)).status, 404);
  const shown = listed(await get(`${path}?limit=5000`, carol));
  assert.equal(shown.length, 3);
  const [last] = shown;
  assert.ok(last && 'output_folder' in last && !('raw' in last) && !('summary' in last));
});

test('splits branch the tree', async () => {
  const post = (json: object, as?: Credentials) => send('POST', child.splits, { json, ...(as && { as }) });
  assert.equal((await post({ filter: '(' })).status, 400, 'the body is looked at first');
  assert.deepEqual(Object.keys((await post({}, carol)).json), ['non_field_errors'], 'without the plugin');
  assert.deepEqual(Object.keys((await post({ compute_resource_name: 'here' }, carol)).json), ['compute_resource_name']);
  const parameters = ['plugininstances', 'filter'].map((name) =>
    parameter(name, 'str', { optional: true, default: '' }),
  );
  await bench.plugin('pl-topologicalcopy', 'ts', { parameters });
  assert.deepEqual(Object.keys((await post({ compute_resource_name: 'there' }, carol)).json), [
    'compute_resource_name',
  ]);
  assert.equal((await post({})).status, 401);
  assert.equal((await post({}, stranger)).status, 403);
  assert.equal((await post({}, alice)).status, 403, 'only whoever made the instance');
  const made = await post({ filter: 'a$ , b$' }, carol);
  assert.equal(made.status, 201, made.text);
  assert.equal(made.json.filter, 'a$,b$');
  const ids = String(made.json.created_plugin_inst_ids).split(',');
  assert.equal(ids.length, 2);
  const branch = (await get(`/api/v1/plugins/instances/${ids[1]}/`, carol)).json;
  assert.equal(branch.previous_id, child.id);
  const given = listed(await get(branch.parameters, carol)).map((one) => [one.param_name, one.value]);
  assert.deepEqual(given, [
    ['plugininstances', String(child.id)],
    ['filter', 'b$'],
  ]);
  assert.equal((await get(made.json.url, alice)).json.plugin_inst_id, child.id);
  assert.equal((await get(child.splits, alice)).json.count, 1);
});

test('only cancelled can be set, and only on what has not ended', async () => {
  const tree = (await bench.run(fs, alice)).json;
  const below = (await bench.run(ds, alice, { previous_id: tree.id })).json;
  for (const status of ['started', 'finishedSuccessfully', '', null]) {
    const answer = await send('PUT', tree.url, { as: alice, json: { title: 'not stored', status } });
    assert.deepEqual([answer.status, Object.keys(answer.json)], [400, ['status']]);
  }
  await bench.setStatus(tree.id, 'finishedSuccessfully');
  const ended = await send('PUT', tree.url, { as: alice, json: { title: 'not stored', status: 'cancelled' } });
  assert.deepEqual([ended.status, Object.keys(ended.json)], [400, ['status']]);
  const after = (await get(tree.url, alice)).json;
  assert.deepEqual([after.title, after.status], ['', 'finishedSuccessfully']);
  assert.equal((await get(below.url, alice)).json.status, 'waiting', 'nothing below was touched');
});

test('cancelling reaches all that lies below', async () => {
  const tree = (await bench.run(fs, alice)).json;
  const below = (await bench.run(ds, alice, { previous_id: tree.id })).json;
  const renamed = await send('PUT', tree.url, { as: alice, json: { title: ' New ', cpu_limit: 1 } });
  assert.deepEqual([renamed.status, renamed.json.title, renamed.json.status], [200, 'New', 'scheduled']);
  const cancelled = await send('PUT', tree.url, { as: alice, json: { status: 'cancelled' } });
  assert.deepEqual([cancelled.status, cancelled.json.status, cancelled.json.active], [200, 'cancelled', false]);
  assert.equal((await get(below.url, alice)).json.status, 'cancelled');
  assert.equal((await send('PUT', tree.url, { as: alice, json: { status: 'cancelled' } })).status, 200);
});

test("the feed's owner can cancel what a sharer runs", async () => {
  const theirs = (await bench.run(ds, carol, { previous_id: root.id })).json;
  const answer = await send('PUT', theirs.url, { as: alice, json: { status: 'cancelled' } });
  assert.deepEqual([answer.status, answer.json.status], [200, 'cancelled']);
});

test('an instance is deleted in the background, the first one of a feed never', async () => {
  for (const as of [alice, bench.admin]) assert.equal((await send('DELETE', root.url, { as })).status, 403);
  const doomed = (await bench.run(ds, alice, { previous_id: root.id })).json;
  const below = (await bench.run(ds, alice, { previous_id: doomed.id })).json;
  const answer = await send('DELETE', doomed.url, { as: alice });
  assert.deepEqual([answer.status, answer.json.deletion_status, answer.json.status], [202, 'pending', 'cancelled']);
  assert.equal((await get(below.url, alice)).json.status, 'cancelled');
  assert.equal((await send('DELETE', doomed.url, { as: alice })).status, 202);
  assert.deepEqual(Object.keys((await bench.run(ds, alice, { previous_id: doomed.id })).json), ['previous_id']);
});
