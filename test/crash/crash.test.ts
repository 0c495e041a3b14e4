/**
 * Kills the server at random moments while it is at work, and finds that nothing it had acknowledged is lost or half done.
 *
 * `CRASHES` says how often (50), `CRASH_SEED` repeats the choices of an earlier run; its moments depend on the machine.
 */
import assert from 'node:assert/strict';
import { chmod, mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import { clientOf, type Request, signUp } from '../helpers/client.ts';
import type { Credentials } from '../helpers/server.ts';
import { Forest, type ListedInstance, TREE_SIZE } from './forest.ts';
import { Gate } from './gate.ts';
import { Inspection } from './inspection.ts';
import { Ledger, type ListedFile } from './ledger.ts';
import { Random } from './random.ts';
import { CrashServer } from './server.ts';
import { download, LARGEST_FILE_BYTES, sha256Of, Uploader } from './uploader.ts';

const CRASHES = Number(process.env.CRASHES ?? 50);
const SEED = Number(process.env.CRASH_SEED ?? Date.now() % 1_000_000);
const UPLOADERS = 3;
const SAMPLE = 3;
/** Within which the last tree has to finish. */
const PATIENCE_SECONDS = 120;

/** Copies its input and adds a file, with a pause between the two. */
const PROGRAM = `#!/bin/sh
set -e
for argument; do in=$out; out=$argument; done
cp -R "$in/." "$out/"
chmod -R u+w "$out"
sleep "$4"
printf %s "$2" > "$out/$2.txt"
`;

const INPUT = { 'a.txt': 'first', 'sub/b.txt': 'second', 'sub/below/c.txt': 'third '.repeat(1000) };

interface Person extends Credentials {
  readonly token: string;
}

const random = new Random(SEED);
let server: CrashServer;
let request: Request;
let uploading: Person;
let analysing: Person;

before(async () => {
  server = await CrashServer.create();
  server.launch();
  await server.untilReady();
  request = clientOf(server);
  uploading = await person('uploading');
  analysing = await person('analysing');
});
after(() => server?.remove());

test(`nothing acknowledged is lost in ${CRASHES} crashes, and everything finishes`, async (t) => {
  t.diagnostic(`seed ${SEED}`);
  const gate = new Gate();
  const ledger = new Ledger();
  const material = random.bytes(LARGEST_FILE_BYTES + 1024 * 1024);
  const forest = new Forest({
    request,
    token: analysing.token,
    gate,
    random: new Random(SEED + 1),
    plugins: await plugins(),
    input: { path: await uploadInput(), files: INPUT },
  });
  const uploaders = Array.from(
    { length: UPLOADERS },
    (_, index) =>
      new Uploader({
        request,
        url: server.url,
        token: uploading.token,
        gate,
        ledger,
        random: new Random(SEED + 2 + index),
        material,
        home: `home/${uploading.username}/uploads/${index}`,
      }),
  );
  const uploads = uploaders.map((uploader) => uploader.work());
  const growing = forest.grow();
  const starts: number[] = [];
  try {
    for (let crash = 1; crash <= CRASHES; crash += 1) {
      gate.open();
      await pause(random.between(0, 400));
      await crashOnce(gate);
      starts.push(await restart());
      await checkAcknowledged(ledger, forest);
    }
    forest.end();
    gate.open();
    const isFinished = await Promise.race([
      growing.then(() => true),
      pause(PATIENCE_SECONDS * 1000, false, { ref: false }),
    ]);
    throwFirst(gate);
    assert.ok(isFinished, `the last tree finishes within ${PATIENCE_SECONDS} s`);
    gate.shut();
    await gate.idle();
    await checkAtTheEnd(ledger, forest);
    await server.stop();
  } catch (error) {
    t.diagnostic(`the end of what the server printed:\n${server.printed}`);
    throw error;
  } finally {
    gate.shut();
    gate.finish();
    await Promise.all([...uploads, growing]);
  }
  starts.sort((a, b) => a - b);
  t.diagnostic(`starts took ${starts[starts.length >> 1]} ms in the middle, ${starts.at(-1)} ms at most`);
  t.diagnostic(`${ledger.files().length} files, ${forest.instances.length} instances of ${TREE_SIZE} a tree`);
});

async function crashOnce(gate: Gate): Promise<void> {
  throwFirst(gate);
  server.requireAlive();
  gate.shut();
  const dice = random.fraction();
  if (dice < 0.3) await server.killPostmaster();
  // by itself the server would end as well, but it is given no time to do so in good order
  if (dice < 0.15) await pause(random.between(0, 100));
  await server.kill();
  await gate.idle();
  throwFirst(gate);
}

/** Starts the server, sometimes only at the second or third try because it is killed while it starts. Answers milliseconds. */
async function restart(): Promise<number> {
  while (random.chance(0.25)) {
    server.launch();
    await pause(random.between(0, 1200));
    server.requireAlive();
    if (random.chance(0.3)) await server.killPostmaster();
    await server.kill();
  }
  const begin = Date.now();
  server.launch();
  await server.untilReady();
  return Date.now() - begin;
}

async function checkAcknowledged(ledger: Ledger, forest: Forest): Promise<void> {
  const listed = await listFiles();
  ledger.compare(listed);
  const files = ledger.files();
  for (let count = 0; count < Math.min(SAMPLE, files.length); count += 1) await checkBytes(random.pick(files), listed);
  forest.compare(await listInstances());
}

async function checkAtTheEnd(ledger: Ledger, forest: Forest): Promise<void> {
  const inspection = await Inspection.open(server);
  try {
    await inspection.untilSettled();
    const listed = await listFiles();
    ledger.compare(listed);
    assert.ok(ledger.isSettled(listed), 'all folders are gone whose removal was acknowledged');
    for (const file of ledger.files()) await checkBytes(file, listed);
    forest.compare(await listInstances());
    for (const { id, title, expected } of forest.instances) await inspection.requireOutputs(id ?? 0, title, expected);
    await inspection.requireRowsAndBytesToAgree();
    inspection.requireNoStrayProcesses();
  } finally {
    await inspection.close();
  }
}

async function checkBytes(file: { path: string; sha256: string }, listed: readonly ListedFile[]): Promise<void> {
  const found = listed.find(({ fname }) => fname === file.path);
  assert.ok(found, `${file.path} is listed`);
  assert.equal(sha256Of(await download(server.url, uploading.token, found)), file.sha256, `the bytes of ${file.path}`);
}

/** Without the file that every home begins with. */
async function listFiles(): Promise<readonly ListedFile[]> {
  const { text } = await request('GET', '/api/v1/userfiles/?limit=100000', { token: uploading.token });
  const page: { readonly results: readonly ListedFile[] } = JSON.parse(text);
  return page.results.filter(({ fname }) => !fname.endsWith('/uploads/welcome.txt'));
}

async function listInstances(): Promise<readonly ListedInstance[]> {
  const { text } = await request('GET', '/api/v1/plugins/instances/?limit=100000', { token: analysing.token });
  const page: { readonly results: readonly ListedInstance[] } = JSON.parse(text);
  return page.results;
}

function throwFirst(gate: Gate): void {
  if (gate.failures.length > 0) throw gate.failures[0];
}

async function person(word: string): Promise<Person> {
  const { username, password } = await signUp(request, word);
  const answer = await request('POST', '/api/v1/auth-token/', { json: { username, password } });
  return { username, password, token: String(answer.json.token) };
}

async function uploadInput(): Promise<string> {
  const path = `home/${analysing.username}/uploads/input`;
  for (const [name, text] of Object.entries(INPUT)) {
    const form = new FormData();
    form.set('upload_path', `${path}/${name}`);
    form.set('fname', new Blob([text]), 'content');
    const answer = await request('POST', '/api/v1/userfiles/', { token: analysing.token, multipart: form });
    assert.equal(answer.status, 201, answer.text);
  }
  return path;
}

async function plugins(): Promise<{ root: number; copy: number; join: number }> {
  const programs = join(server.data, 'programs');
  await mkdir(join(programs, 'pl-slow-copy'), { recursive: true });
  await writeFile(join(programs, 'pl-slow-copy', 'run'), PROGRAM);
  await chmod(join(programs, 'pl-slow-copy', 'run'), 0o755);
  const made = await request('POST', '/svc-admin/api/v1/computeresources/', {
    as: server.admin,
    json: { name: 'here', compute_url: `process:${programs}` },
  });
  assert.equal(made.status, 201, made.text);
  return {
    root: await newestPlugin('pl-dircopy'),
    copy: await registerProgram(),
    join: await newestPlugin('pl-topologicalcopy'),
  };
}

async function newestPlugin(name: string): Promise<number> {
  const answer = await request('GET', `/api/v1/plugins/search/?name_exact=${name}`);
  assert.equal(answer.status, 200, answer.text);
  return Number(answer.json.results?.[0]?.id);
}

async function registerProgram(): Promise<number> {
  const text = (name: string) => ({ name, type: 'str', optional: false, flag: `--${name}`, help: name });
  const descriptor = {
    name: 'pl-slow-copy',
    type: 'ds',
    version: '1.0',
    dock_image: 'example/pl-slow-copy',
    execshell: 'sh',
    selfpath: '/bin',
    selfexec: 'run',
    parameters: [text('word'), text('pause')],
  };
  const form = new FormData();
  form.set('fname', new Blob([JSON.stringify(descriptor)]), 'descriptor.json');
  form.set('compute_names', 'here');
  const answer = await request('POST', '/svc-admin/api/v1/', { as: server.admin, multipart: form });
  assert.equal(answer.status, 201, answer.text);
  return Number(answer.json.id);
}
