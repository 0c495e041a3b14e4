import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { inflateSync } from 'node:zlib';
import { Bench, type User } from './bench.ts';

let bench: Bench;
let alice: User;
before(async () => {
  bench = await Bench.open();
  await bench.startWorker();
  alice = await bench.user('alice');
});
after(() => bench[Symbol.asyncDispose]());

const PATH = { name: 'dir', type: 'unextpath', optional: false, flag: '--dir', help: 'input' };

test('a tree runs to its end: children start after their parents, outputs have rows, sizes and logs', async () => {
  const root = await bench.plugin(
    'pl-root',
    'fs',
    'echo made; mkdir "$out/sub"; echo 12345 > "$out/sub/a,b.txt"; echo 1 > "$out/sub/ab.txt"; echo x > "$out/x.chrislink"; echo y > "$out/,"',
  );
  const copy = await bench.plugin('pl-copy', 'ds', 'cp -r "$in/." "$out/"; echo done >&2');
  const first = await bench.start(root, alice, { title: 'first' });
  const second = await bench.start(copy, alice, { previous_id: first });
  const third = await bench.start(copy, alice, { previous_id: second });
  const end = await bench.ended(third);
  assert.deepEqual([end.status, end.error_code, end.size_bytes], ['finishedSuccessfully', '', 8]);
  assert.match(end.job_logs, /done/);
  const { compute } = JSON.parse(inflateSync(Buffer.from(end.raw, 'base64')).toString());
  assert.deepEqual([compute.status, compute.jid], ['finishedSuccessfully', `chris-jid-${third}`]);
  const files = { 'sub/ab.txt': 2, 'sub/ab_1.txt': 6 };
  assert.deepEqual(await bench.outputs(first), files, 'names are clean, and none takes the place of another');
  assert.deepEqual(await bench.outputs(third), files);
  assert.equal(bench.read(`${await bench.outputPath(third)}/sub/ab_1.txt`), '12345\n');
  assert.equal(
    bench.exists(`${await bench.outputPath(first)}/x.chrislink`),
    false,
    'link files of programs are refused',
  );
  await bench.cleanedUp();
  const tokens = await bench.services.database.selectFrom('api_token').select('id').where('kind', '=', 'job').execute();
  assert.deepEqual(tokens, [], 'tokens of programs end with them');
});

test('a program is told who it runs for, and its token reaches its own feed only', async () => {
  const plugin = await bench.plugin(
    'pl-env',
    'fs',
    'env > "$out/env.txt"; while [ ! -e "$out/go" ]; do sleep 0.05; done; rm "$out/go"',
  );
  const id = await bench.start(plugin, alice);
  const other = await bench.start(plugin, alice);
  await bench.ended(id, ['started']);
  await bench.ended(other, ['started']);
  const path = await bench.outputPath(id);
  await bench.eventually(
    () => bench.exists(`${path}/env.txt`) && /CHRIS_USER_TOKEN=[0-9a-f]{40}/.test(bench.read(`${path}/env.txt`)),
  );
  const environment = bench.read(`${path}/env.txt`);
  assert.match(environment, new RegExp(`^CHRIS_USER_USERNAME=${alice.username}$`, 'm'));
  assert.match(environment, new RegExp(`^CHRIS_PLG_INST_ID=${id}$`, 'm'));
  const token = /CHRIS_USER_TOKEN=(\w+)/.exec(environment)?.[1] ?? '';
  const get = async (instance: number) =>
    (await bench.request('GET', `/api/v1/plugins/instances/${instance}/`, { token })).status;
  assert.equal(await get(id), 200);
  assert.ok([403, 404].includes(await get(other)));
  await bench.touch(`${path}/go`);
  await bench.touch(`${await bench.outputPath(other)}/go`);
  await bench.ended(id);
  await bench.ended(other);
  assert.equal(await get(id), 401, 'the token ends with the job');
});

test('pl-dircopy links to the folders it is given, and its children read through the links', async () => {
  await bench.put(alice, 'in/a.txt', 'aa');
  await bench.put(alice, 'in/sub/b.txt', 'bbb');
  const dir = `home/${alice.username}/uploads/in`;
  const root = await bench.start(await bench.builtin('pl-dircopy'), alice, { dir: `${dir},${dir}/a.txt` });
  const end = await bench.ended(root);
  assert.equal(end.status, 'finishedSuccessfully');
  const link = `${dir.replaceAll('/', '_')}.chrislink`;
  assert.deepEqual(await bench.outputs(root), {
    [link]: dir,
    [link.replace('.chrislink', '_a.txt.chrislink')]: `${dir}/a.txt`,
  });
  assert.equal(bench.read(`${await bench.outputPath(root)}/${link}`), dir);
  assert.equal(end.size_bytes, dir.length * 2 + '/a.txt'.length);
  const list = await bench.plugin('pl-list', 'ds', 'cd "$in"; find . -type f | sort > "$out/list.txt"');
  const child = await bench.start(list, alice, { previous_id: root });
  assert.equal((await bench.ended(child)).status, 'finishedSuccessfully');
  assert.match(bench.read(`${await bench.outputPath(child)}/list.txt`), /sub\/b\.txt/);
});

test('a path that has gone makes no link, one that holds the output cancels with CODE17', async () => {
  const gone = await bench.put(alice, 'gone.txt', 'x');
  const plugin = await bench.plugin('pl-link', 'fs', 'sleep 0.3', [PATH]);
  const vanishing = await bench.start(plugin, alice, { dir: gone });
  await bench.services.database.deleteFrom('file').where('name', '=', 'gone.txt').execute();
  assert.equal((await bench.ended(vanishing)).status, 'finishedSuccessfully');
  assert.deepEqual(await bench.outputs(vanishing), {});
  const first = await bench.start(await bench.plugin('pl-make', 'fs', 'echo 1 > "$out/1"'), alice);
  await bench.ended(first);
  const feed = (await bench.outputPath(first)).split('/').slice(0, 4).join('/');
  const linkChild = await bench.plugin('pl-link-child', 'ds', 'true', [PATH]);
  const child = await bench.start(linkChild, alice, { previous_id: first, dir: feed });
  const end = await bench.ended(child);
  assert.deepEqual([end.status, end.error_code], ['cancelled', 'CODE17']);
  assert.match(end.job_logs, /holds the output folder/);
});

test('pl-topologicalcopy joins filtered outputs of several parents, the first of two with one path', async () => {
  const make = await bench.plugin('pl-words', 'fs', 'echo root > "$out/root.txt"');
  const words = await bench.plugin('pl-word', 'ds', 'echo "$2" > "$out/x.txt"; echo "$2" > "$out/$2.dat"', [
    { name: 'word', type: 'str', optional: false, flag: '--word', help: 'word' },
  ]);
  const root = await bench.start(make, alice);
  const [one, two] = [
    await bench.start(words, alice, { previous_id: root, word: 'one' }),
    await bench.start(words, alice, { previous_id: root, word: 'three' }),
  ];
  const join = await bench.builtin('pl-topologicalcopy');
  const parents = { previous_id: one, plugininstances: `${one},${two}` };
  const flat = await bench.start(join, alice, parents);
  const grouped = await bench.start(join, alice, { ...parents, groupByInstance: true, filter: 'x\\.txt$,^nothing$' });
  assert.equal((await bench.ended(flat)).status, 'finishedSuccessfully');
  assert.deepEqual(await bench.outputs(flat), { 'one.dat': 4, 'three.dat': 6, 'x.txt': 4 });
  assert.equal((await bench.ended(grouped)).size_bytes, 4);
  assert.deepEqual(await bench.outputs(grouped), { [`${one}/x.txt`]: 4 });
});
