import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import type { Answer, Json, Options } from '../helpers/client.ts';
import type { Credentials } from '../helpers/server.ts';
import { type Bench, openBench, type Plugin } from '../instances/bench.ts';

let bench: Bench;
let alice: Credentials & { readonly id: number };
let carol: Credentials & { readonly id: number };
let stranger: Credentials;
let fs: Plugin;

before(async () => {
  bench = await openBench();
  [alice, carol, stranger] = [await bench.user('alice'), await bench.user('carol'), await bench.user('stranger')];
  fs = await bench.plugin('pl-root', 'fs');
});
after(() => bench?.close());

const get = (path: unknown, as?: Credentials): Promise<Answer> => bench.request('GET', String(path), as ? { as } : {});
const send = (method: string, path: unknown, options: Options): Promise<Answer> =>
  bench.request(method, String(path), options);

async function newFeed(title: string): Promise<Json> {
  const { json } = await bench.run(fs, alice, { title });
  return (await get(json.feed, alice)).json;
}

function names(answer: Answer): readonly unknown[] {
  assert.equal(answer.status, 200, answer.text);
  const { results } = answer.json;
  assert.ok(Array.isArray(results));
  return results.map((one) => one.name);
}

async function share(feed: Json, ways: readonly ('user' | 'group')[]): Promise<void> {
  const feed_id = Number(feed.id);
  if (ways.includes('user'))
    await bench.database.insertInto('feed_user_permission').values({ feed_id, account_id: carol.id }).execute();
  if (!ways.includes('group')) return;
  for (const name of [`first ${feed_id}`, `second ${feed_id}`]) {
    const { id: group_id } = await bench.database
      .insertInto('account_group')
      .values({ name })
      .returning('id')
      .executeTakeFirstOrThrow();
    await bench.database.insertInto('membership').values({ group_id, account_id: carol.id }).execute();
    await bench.database.insertInto('feed_group_permission').values({ feed_id, group_id }).execute();
  }
}

test('strangers see and change nothing', async () => {
  const feed = await newFeed('private');
  for (const path of [feed.url, feed.note, feed.plugin_instances, feed.files]) {
    assert.equal((await get(path)).status, 401);
    assert.equal((await get(path, stranger)).status, 403);
    assert.equal((await get(path, bench.admin)).status, 200);
  }
  for (const [as, status] of [
    [undefined, 401],
    [stranger, 403],
  ] as const) {
    const options = { ...(as && { as }) };
    assert.equal((await send('PUT', feed.url, { ...options, json: { name: 'x' } })).status, status);
    assert.equal((await send('PUT', feed.note, { ...options, json: { title: 'x' } })).status, status);
    assert.equal((await send('DELETE', feed.url, options)).status, status);
  }
  assert.deepEqual(names(await get('/api/v1/')), []);
  assert.deepEqual(names(await get('/api/v1/search/?name=private')), []);
  assert.deepEqual(names(await get('/api/v1/search/?name=private', stranger)), []);
  assert.equal((await get('/api/v1/99999999/', alice)).status, 404);
  assert.equal((await get('/api/v1/note99999999/', alice)).status, 404);
});

test('bad input is refused by field', async () => {
  const feed = await newFeed('checked');
  for (const [json, field] of [
    [{ name: 'n'.repeat(201) }, 'name'],
    [{ name: null }, 'name'],
    [{ public: 'maybe' }, 'public'],
  ] as const) {
    const answer = await send('PUT', feed.url, { as: alice, json });
    assert.deepEqual([answer.status, Object.keys(answer.json)], [400, [field]]);
  }
  for (const query of ['id=x', 'min_id=x', 'max_creation_date=x', 'deletion_status=x', 'files_fname_icontains=%00']) {
    const answer = await get(`/api/v1/search/?${query}`, alice);
    assert.deepEqual([answer.status, Object.keys(answer.json)], [400, [query.split('=')[0]]]);
  }
  assert.equal((await send('POST', '/api/v1/', { as: alice, json: {} })).status, 405);
  assert.equal((await send('DELETE', feed.note, { as: alice })).status, 405);
});

test('a sharer may rename a feed but neither publish nor delete it', async () => {
  const feed = await newFeed('shared');
  await share(feed, ['user', 'group']);
  assert.deepEqual(
    names(await get('/api/v1/search/?name_exact=shared', carol)),
    ['shared'],
    'once, however it is shared',
  );
  const unchanged = await send('PUT', feed.url, { as: carol, json: { name: 'by carol', public: false } });
  assert.deepEqual([unchanged.status, unchanged.json.name], [200, 'by carol']);
  const published = await send('PUT', feed.url, { as: carol, json: { name: 'not stored', public: true } });
  assert.deepEqual([published.status, Object.keys(published.json)], [400, ['public']]);
  assert.equal((await get(feed.url, alice)).json.name, 'by carol');
  assert.equal((await send('DELETE', feed.url, { as: carol })).status, 403);
  const byGroup = await newFeed('by group');
  await share(byGroup, ['group']);
  const note = await send('PUT', byGroup.note, { as: carol, json: { title: ' T ' } });
  assert.deepEqual([note.status, note.json.title, note.json.content], [200, 'T', '']);
});

test('jobs are counted once by status', async () => {
  const feed = await newFeed('counted');
  await share(feed, ['user', 'group']);
  const ds = await bench.plugin('pl-child', 'ds');
  const instances = (await get(feed.plugin_instances, alice)).json.results;
  const previous_id = instances?.[0]?.id;
  for (let index = 0; index < 3; index += 1) await bench.run(ds, carol, { previous_id });
  for (const path of [feed.url, `/api/v1/search/?id=${feed.id}`]) {
    const { json } = await get(path, carol);
    const shown = json.results?.[0] ?? json;
    assert.deepEqual([shown.scheduled_jobs, shown.waiting_jobs, shown.started_jobs], [1, 3, 0]);
  }
});

test('the lists hold what they should', async () => {
  const [first, second] = [await newFeed('listed one'), await newFeed('listed two')];
  await send('PUT', second.url, { as: alice, json: { public: true } });
  const search = async (list: string, as?: Credentials) => names(await get(`/api/v1/${list}search/?name=LISTED`, as));
  assert.deepEqual(await search('', alice), ['listed two', 'listed one']);
  assert.deepEqual(await search('', carol), [], 'public ones of others are not in it');
  assert.deepEqual(await search('', bench.admin), ['listed one'], 'administrators see all but public ones');
  for (const as of [undefined, alice, bench.admin]) assert.deepEqual(await search('publicfeeds/', as), ['listed two']);
  assert.deepEqual(names(await get('/api/v1/search/?public=false&name=listed', alice)), ['listed one']);
  const ids = `min_id=${first.id}&max_id=${first.id}`;
  assert.deepEqual(names(await get(`/api/v1/search/?${ids}&name_startswith=listed`, alice)), ['listed one']);
  assert.deepEqual(names(await get(`/api/v1/search/?${ids}&name_startswith=Listed`, alice)), []);
});

test('a public feed is public with all its files, and private again', async () => {
  const feed = await newFeed('published');
  const link = `home_${alice.username}_feeds_feed_${feed.id}.chrislink`;
  const linked = () => bench.database.selectFrom('link_file').select('name').where('name', '=', link).execute();
  const published = await send('PUT', feed.url, { as: alice, json: { public: true } });
  assert.equal(published.json.public, true);
  assert.ok(String(published.json.modification_date) > String(feed.modification_date));
  for (const path of [feed.url, feed.note, feed.plugin_instances, feed.files])
    assert.equal((await get(path)).status, 200);
  assert.equal((await send('PUT', feed.url, { as: stranger, json: { name: 'x' } })).status, 403);
  assert.equal((await linked()).length, 1);
  const { folder_path } = published.json;
  const isPublic = async () => {
    const { acl_id } = await bench.database
      .selectFrom('folder')
      .select('acl_id')
      .where('path', '=', String(folder_path))
      .executeTakeFirstOrThrow();
    return (await bench.database.selectFrom('acl').select('public').where('id', '=', acl_id).executeTakeFirst())
      ?.public;
  };
  assert.equal(await isPublic(), true);
  const kept = await send('PUT', feed.url, { as: alice, json: { name: 'still public' } });
  assert.equal(kept.json.public, true, 'JSON that leaves it out leaves it alone');
  const form = await send('PUT', feed.url, { as: alice, form: { name: 'by form' } });
  assert.equal(form.json.public, false, 'a form that leaves a tick box out unticks it');
  assert.equal(await isPublic(), false);
  assert.equal((await linked()).length, 0);
  assert.equal((await get(feed.url)).status, 401);
});

test('a feed is deleted in the background, its jobs cancelled at once', async () => {
  const feed = await newFeed('doomed');
  const answer = await send('DELETE', feed.url, { as: alice });
  const { deletion_status, deletion_error, cancelled_jobs, scheduled_jobs } = answer.json;
  assert.deepEqual([answer.status, deletion_status, deletion_error], [202, 'pending', '']);
  assert.deepEqual([cancelled_jobs, scheduled_jobs], [1, 0]);
  const ds = await bench.plugin('pl-late', 'ds');
  const [root] = JSON.parse(JSON.stringify((await get(feed.plugin_instances, alice)).json.results));
  const late = await bench.run(ds, alice, { previous_id: root.id });
  assert.deepEqual([late.status, Object.keys(late.json)], [400, ['previous_id']]);
  const again = await send('DELETE', feed.url, { as: alice });
  assert.deepEqual([again.status, again.json.deletion_requested_at], [202, answer.json.deletion_requested_at]);
});

test('the home page leads everywhere', async () => {
  const rels = async (as?: Credentials) => Object.keys((await get('/api/v1/', as)).json.collection_links ?? {});
  assert.ok(!(await rels()).includes('user'));
  assert.equal(
    (await get('/api/v1/', alice)).json.collection_links?.user,
    (await get(`/api/v1/users/${alice.id}/`, alice)).json.url,
  );
  assert.ok(!(await rels(alice)).includes('admin'));
  assert.ok((await rels(bench.admin)).includes('admin'));
});
