import assert from 'node:assert/strict';
import { mkdir, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { after, before, test } from 'node:test';
import { writeFileRows } from '../../src/instances/output-rows.ts';
import type { Answer, Json } from '../helpers/client.ts';
import type { Credentials } from '../helpers/server.ts';
import { type Bench, openBench } from '../instances/bench.ts';

let bench: Bench;
let alice: Credentials & { readonly id: number };
let stranger: Credentials;
let root: Json;
let child: Json;

/** Registers outputs as the end of a job does. */
async function addFiles(instance: Json, paths: readonly string[]): Promise<void> {
  const place = { folderPath: String(instance.output_path), ownerId: alice.id };
  for (const path of paths) {
    const target = join(bench.storage, place.folderPath, path);
    await mkdir(dirname(target), { recursive: true });
    await writeFile(target, path);
  }
  const files = paths.map((path) => ({ path, sizeBytes: Buffer.byteLength(path) }));
  await bench.database.transaction().execute((transaction) => writeFileRows(transaction, place, files));
}

before(async () => {
  bench = await openBench();
  [alice, stranger] = [await bench.user('alice'), await bench.user('stranger')];
  root = (await bench.run(await bench.plugin('pl-root', 'fs'), alice)).json;
  child = (await bench.run(await bench.plugin('pl-child', 'ds'), alice, { previous_id: root.id })).json;
  await addFiles(root, ['Brain.nii', 'sub/deeper/slice 1.png']);
  await addFiles(child, ['report_100%.csv']);
  await bench.run(await bench.plugin('pl-other', 'fs'), alice);
});
after(() => bench?.close());

const get = (path: unknown, as?: Credentials): Promise<Answer> => bench.request('GET', String(path), as ? { as } : {});

function listed(answer: Answer): readonly Json[] {
  assert.equal(answer.status, 200, answer.text);
  const { results } = answer.json;
  assert.ok(Array.isArray(results));
  return results;
}

const files = (): string => `/api/v1/${root.feed_id}/files/`;

test('strangers see no file', async () => {
  const [file] = listed(await get(files(), alice));
  for (const path of [files(), root.files, file?.url, file?.file_resource]) {
    assert.equal((await get(path)).status, 401, String(path));
    assert.equal((await get(path, stranger)).status, 403, String(path));
    assert.equal((await get(path, bench.admin)).status, 200, String(path));
  }
  assert.equal((await get('/api/v1/files/')).status, 401);
  assert.equal((await get('/api/v1/files/', stranger)).json.count, 0);
  assert.equal((await get('/api/v1/files/99999999/', alice)).status, 404);
  assert.equal((await get('/api/v1/files/99999999/x', alice)).status, 404);
  assert.equal((await get('/api/v1/99999999/files/', alice)).status, 404);
});

test('a file in a feed folder that no job has made is none of its files', async () => {
  const upload = await bench.database
    .selectFrom('folder')
    .select('id')
    .where('path', '=', `home/${alice.username}/uploads`)
    .executeTakeFirstOrThrow();
  const file = { folder_id: upload.id, name: 'x.txt', owner_id: alice.id, size_bytes: 0 };
  const { id } = await bench.database.insertInto('file').values(file).returning('id').executeTakeFirstOrThrow();
  assert.equal((await get(`/api/v1/files/${id}/`, alice)).status, 404);
});

test("the feed's files are all outputs of its jobs", async () => {
  const answer = await get(files(), alice);
  assert.equal(answer.headers.get('allow'), 'GET');
  const paths = listed(answer).map(({ fname }) => fname);
  assert.deepEqual(paths, [
    `${child.output_path}/report_100%.csv`,
    `${root.output_path}/sub/deeper/slice 1.png`,
    `${root.output_path}/Brain.nii`,
  ]);
  assert.deepEqual(
    listed(await get(child.files, alice)).map(({ fname }) => fname),
    [`${child.output_path}/report_100%.csv`],
  );
});

test('a file leads to its feed, its instance and its content', async () => {
  const collection = (
    await bench.request('GET', files(), { as: alice, headers: { accept: 'application/vnd.collection+json' } })
  ).json.collection;
  assert.deepEqual(collection?.links, [{ rel: 'feed', href: root.feed }]);
  assert.deepEqual((await get(child.files, alice)).json.collection_links, { feed: root.feed, plugin_inst: child.url });
  const item = collection?.items?.[1];
  const links: unknown = item?.links;
  assert.ok(Array.isArray(links));
  const hrefs = new Map(links.map(({ rel, href }) => [rel, href]));
  assert.equal(hrefs.get('feed'), root.feed);
  assert.equal(hrefs.get('plugin_inst'), root.url);
  assert.match(String(hrefs.get('file_resource')), /\/api\/v1\/files\/\d+\/slice 1.png$/);
  const one = (await get(item?.href, alice)).json;
  assert.deepEqual([one.plugin_inst_id, one.feed_id, one.fsize, one.public], [root.id, root.feed_id, 22, false]);
  const content = await get(one.file_resource, alice);
  assert.equal(content.text, 'sub/deeper/slice 1.png');
  assert.match(String(content.headers.get('content-disposition')), /^attachment; filename="slice 1.png"/);
});

test('files are searched among those of own feeds', async () => {
  const search = async (query: string, as: Credentials = alice) =>
    listed(await get(`/api/v1/files/search/?${query}`, as)).map(({ fname }) => String(fname).split('/').at(-1));
  assert.deepEqual(await search('fname_icontains=BRAIN'), ['Brain.nii']);
  assert.deepEqual(await search(`plugin_inst_id=${child.id}`), ['report_100%.csv']);
  assert.deepEqual(await search('fname_icontains=report_100%25'), ['report_100%.csv']);
  assert.deepEqual(await search('fname_icontains=t_100_'), []);
  assert.deepEqual(await search(`feed_id=${root.feed_id}`, stranger), []);
  assert.deepEqual(Object.keys((await get('/api/v1/files/search/?feed_id=x', alice)).json), ['feed_id']);
});

test('a feed is found by the words in the path of one of its files', async () => {
  const found = async (words: string) =>
    (await get(`/api/v1/search/?files_fname_icontains=${encodeURIComponent(words)}`, alice)).json.count;
  assert.equal(await found('brain'), 1);
  assert.equal(await found('DEEPER slice'), 1);
  assert.equal(await found('deeper/slice'), 1, 'across the end of a folder');
  assert.equal(await found('brain slice'), 0, 'words of two files');
  assert.equal(await found('100%'), 1);
  assert.equal(await found('b_ain'), 0);
});
