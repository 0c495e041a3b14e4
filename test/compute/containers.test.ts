import assert from 'node:assert/strict';
import { existsSync, statSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import Docker from 'dockerode';
import { ContainerEngine } from '../../src/compute/containers.ts';
import { CollectionFailed, ServiceRefused, ServiceUnreachable, SubmissionFailed } from '../../src/compute/errors.ts';
import { Bench, ended, eventually, makeJob, silent } from './bench.ts';

const SOCKET = process.env.DOCKER_HOST?.replace(/^unix:\/\//, '') || '/run/podman.sock';
const IMAGE = 'localhost/busybox:1';
const docker = new Docker({ socketPath: SOCKET });

const unavailable = await docker
  .getImage(IMAGE)
  .inspect()
  .then(
    () => false as const,
    (error: Error) => `no container engine with the image ${IMAGE} at ${SOCKET}: ${error.message}`,
  );

function engineOf(bench: Bench, more: Partial<ConstructorParameters<typeof ContainerEngine>[0]> = {}): ContainerEngine {
  const { storage, dataDirectory } = bench;
  const computeUrl = `unix://${SOCKET}`;
  return new ContainerEngine({
    computeUrl,
    serverId: 'test',
    user: '',
    storage,
    dataDirectory,
    log: silent,
    pullTimeoutSeconds: 20,
    ...more,
  });
}

/** A job that runs a shell script; `$1` is the input folder, `$2` the output folder. */
function script(bench: Bench, text: string, more = {}) {
  return makeJob(bench, { entrypoint: ['sh', '-c', text, 'sh'], image: IMAGE, ...more });
}

test('an engine that is not there is unreachable, and the message names it', async () => {
  await using bench = await Bench.open();
  const engine = engineOf(bench, { computeUrl: 'unix:///no/such.sock' });
  const given = script(bench, 'true');
  const isUnreachable = (error: unknown) => error instanceof ServiceUnreachable && /no\/such\.sock/.test(error.message);
  await assert.rejects(engine.describe(), isUnreachable);
  await assert.rejects(engine.submit('plugin', given), isUnreachable);
  await assert.rejects(engine.inspect('plugin', given), isUnreachable);
  await assert.rejects(engine.cancel(given.id), isUnreachable);
  engine.watch('plugin', given, () => assert.fail('nothing has changed'));
  await engine.close();
  assert.throws(() => engineOf(bench, { computeUrl: 'tcp://nowhere' }), ServiceRefused);
});

test('an image that is not there and cannot be pulled is named', { skip: unavailable }, async () => {
  await using bench = await Bench.open();
  const given = script(bench, 'true', { image: 'localhost/pl-nowhere:1' });
  await assert.rejects(
    engineOf(bench).submit('plugin', given),
    (error) =>
      error instanceof SubmissionFailed &&
      !error.retry &&
      error.code === 'CODE01' &&
      /"localhost\/pl-nowhere:1" is not on the compute resource/.test(error.message),
  );
});

test('a program that the image does not have is named', { skip: unavailable }, async (t) => {
  await using bench = await Bench.open();
  const engine = engineOf(bench);
  const given = makeJob(bench, { entrypoint: ['no-such-program'], image: IMAGE });
  t.after(() => engine.remove(given.id));
  await engine.submit('plugin', given);
  const state = await ended(engine, given);
  assert.equal(state.status, 'finishedWithError');
  assert.match(state.message, /no program "no-such-program"/);
});

test("a job gets its input, arguments and environment, and its output becomes the server's", {
  skip: unavailable,
}, async (t) => {
  await using bench = await Bench.open();
  await bench.put('in/sub/b.txt', 'second');
  const engine = engineOf(bench);
  assert.deepEqual(await engine.describe(), { inNetwork: true, requiresCopyJob: false, requiresUploadJob: false });
  const given = script(
    bench,
    'id -u; env; echo "args:$*"; cat /share/incoming/sub/b.txt > /share/outgoing/copy; mkdir /share/outgoing/d; echo 1 > /share/outgoing/d/f; chmod 000 /share/outgoing/d/f; chmod 700 /share/outgoing/d; echo t > $TMPDIR/t; echo err >&2',
    { arguments: ['--dir', 'home/x', '--word', 'two words'], pathFlags: ['--dir'], environment: { CHRIS_JID: 'j' } },
  );
  t.after(() => engine.remove(given.id));
  assert.equal((await engine.submit('plugin', given)).status, 'started');
  const state = await ended(engine, given);
  assert.equal(state.status, 'finishedSuccessfully', JSON.stringify(state));
  if (process.getuid?.() === 0) assert.match(state.logs, /^65534$/m);
  assert.match(state.logs, /^CHRIS_JID=j$/m);
  assert.match(state.logs, /^args:--dir \/share\/incoming --word two words \/share\/incoming \/share\/outgoing$/m);
  assert.match(state.logs, /^err$/m);
  assert.ok(Date.parse(state.timestamp) > 0);
  assert.deepEqual(await engine.collect(given), ['copy', 'd/f']);
  assert.equal(bench.read(`${given.outputPath}/copy`), 'second');
  assert.equal(bench.read('in/sub/b.txt'), 'second');
  assert.equal(statSync(bench.path(`${given.outputPath}/d/f`)).uid, process.getuid?.());
  assert.equal(statSync(bench.path(given.outputPath)).uid, process.getuid?.());
  assert.equal((await engine.submit('plugin', given)).status, 'finishedSuccessfully', 'it is not run again');
  await engine.remove(given.id);
  await engine.remove(given.id);
  assert.equal(await engine.inspect('plugin', given), null);
  assert.equal(existsSync(join(bench.dataDirectory, 'jobs', given.id)), false);
});

test('a container is confined', { skip: unavailable }, async (t) => {
  await using bench = await Bench.open();
  const engine = engineOf(bench);
  const given = script(bench, 'true', {
    limits: { numberOfWorkers: 1, cpuMillicores: 1500, memoryMebibytes: 64, gpus: 0 },
  });
  t.after(() => engine.remove(given.id));
  await engine.submit('plugin', given);
  const { HostConfig: host, Config: config, Mounts: mounts } = await docker.getContainer(`${given.id}-test`).inspect();
  assert.ok(host.SecurityOpt?.some((option: string) => option.startsWith('no-new-privileges')));
  assert.equal(host.Privileged, false);
  assert.ok((host.CapDrop ?? []).includes('ALL') || (host.CapDrop ?? []).length >= 11);
  assert.equal(config.Labels['hypercube.job'], given.id);
  assert.deepEqual(mounts.map(({ Destination, RW }) => [Destination, RW]).sort(), [
    ['/share/incoming', false],
    ['/share/outgoing', true],
    ['/share/scratch', true],
  ]);
});

test("the parent's folder is mounted as it is unless link files or other paths belong to the input", {
  skip: unavailable,
}, async (t) => {
  await using bench = await Bench.open();
  await bench.put('in/a', 'a');
  await bench.put('more/b', 'b');
  const engine = engineOf(bench);
  const source = async (given: ReturnType<typeof script>) => {
    t.after(() => engine.remove(given.id));
    await engine.submit('plugin', given);
    assert.equal((await ended(engine, given)).status, 'finishedSuccessfully');
    const { Mounts: mounts } = await docker.getContainer(`${given.id}-test`).inspect();
    return mounts.find(({ Destination }) => Destination === '/share/incoming')?.Source;
  };
  assert.equal(await source(script(bench, 'true')), bench.path('in'));
  const two = script(bench, 'cat /share/incoming/a /share/incoming/b > /share/outgoing/ab', {
    inputPaths: ['in', 'more'],
  });
  assert.equal(await source(two), join(bench.dataDirectory, 'jobs', two.id, 'incoming'));
  assert.equal(bench.read(`${two.outputPath}/ab`), 'ab');
  const resolved = script(bench, 'cat /share/incoming/home_x/a > /share/outgoing/a', {
    stagedInputs: async function* () {
      yield { relativePath: 'home_x/a', storagePath: 'in/a', sizeBytes: 1 };
    },
  });
  assert.equal(await source(resolved), join(bench.dataDirectory, 'jobs', resolved.id, 'incoming'));
  const part = script(bench, '[ ! -e /share/incoming/a ]', { stagedInputs: async function* () {} });
  assert.equal(await source(part), join(bench.dataDirectory, 'jobs', part.id, 'incoming'));
});

test('a failed program is told apart, and run again with an empty output folder', { skip: unavailable }, async (t) => {
  await using bench = await Bench.open();
  const engine = engineOf(bench);
  const given = script(bench, 'ls /share/outgoing; echo x > /share/outgoing/left; exit 3');
  t.after(() => engine.remove(given.id));
  for (let turn = 0; turn < 2; turn++) {
    await engine.submit('plugin', given);
    const state = await ended(engine, given);
    assert.equal(state.status, 'finishedWithError');
    assert.equal(state.message, 'exited with 3');
    assert.equal(state.logs, '');
  }
  assert.deepEqual(await engine.collect(given), ['left']);
});

test('a running container is found by another engine object, and a container of another server is not touched', {
  skip: unavailable,
}, async (t) => {
  await using bench = await Bench.open();
  const first = engineOf(bench);
  const given = script(bench, 'while [ ! -e /share/outgoing/go ]; do sleep 0.1; done');
  t.after(() => first.remove(given.id));
  await first.submit('plugin', given);
  await first.close();
  const second = engineOf(bench);
  assert.equal((await second.submit('plugin', given)).status, 'started');
  const other = engineOf(bench, { serverId: 'other' });
  assert.equal(await other.inspect('plugin', given), null);
  await other.cancel(given.id);
  const end = ended(second, given);
  await bench.put(`${given.outputPath}/go`, '');
  assert.equal((await end).status, 'finishedSuccessfully');
});

test('cancelling ends a program that ignores SIGTERM', { skip: unavailable }, async (t) => {
  await using bench = await Bench.open();
  const engine = engineOf(bench);
  const given = script(bench, "trap '' TERM; echo up; while true; do sleep 0.1; done");
  t.after(() => engine.remove(given.id));
  await engine.submit('plugin', given);
  await eventually(async () => (await engine.inspect('plugin', given))?.logs === 'up\n', 'program runs');
  const end = ended(engine, given);
  await engine.cancel(given.id);
  assert.equal((await end).status, 'finishedWithError');
  await engine.cancel(given.id);
  await engine.cancel('never-there');
});

test('the log is bounded', { skip: unavailable }, async (t) => {
  await using bench = await Bench.open();
  const engine = engineOf(bench);
  const given = script(bench, 'head -c 4000000 /dev/zero | tr "\\0" "x"; echo; echo the end');
  t.after(() => engine.remove(given.id));
  await engine.submit('plugin', given);
  const state = await ended(engine, given);
  assert.equal(state.status, 'finishedSuccessfully');
  assert.match(state.logs, /the end\n$/);
  assert.ok(Buffer.byteLength(state.logs) <= 256 * 1024);
});

test('links within the output become copies, links out of it fail the job', { skip: unavailable }, async (t) => {
  await using bench = await Bench.open();
  const engine = engineOf(bench);
  const ln = 'busybox ln -s';
  const good = script(
    bench,
    `mkdir /share/outgoing/d; echo a > /share/outgoing/d/a; ${ln} /share/outgoing/d/a /share/outgoing/l; ${ln} d /share/outgoing/e; ${ln} nothing /share/outgoing/n; ${ln} .. /share/outgoing/d/up`,
  );
  const bad = script(bench, `echo a > /share/outgoing/a; ${ln} ../../../../../../../etc/passwd /share/outgoing/secret`);
  for (const given of [good, bad]) {
    t.after(() => engine.remove(given.id));
    await engine.submit('plugin', given);
    const state = await ended(engine, given);
    assert.equal(state.status, 'finishedSuccessfully', state.logs);
  }
  assert.deepEqual(await engine.collect(good), ['d/a', 'e/a', 'l']);
  assert.deepEqual(await engine.collect(good), ['d/a', 'e/a', 'l']);
  assert.equal(bench.read(`${good.outputPath}/l`), 'a\n');
  for (let turn = 0; turn < 2; turn++) {
    await assert.rejects(
      engine.collect(bad),
      (error) => error instanceof CollectionFailed && error.code === 'CODE17' && /"secret"/.test(error.message),
    );
  }
  assert.equal(existsSync(bench.path(`${bad.outputPath}/secret`)), false);
});

test('an output folder that leads elsewhere is refused', { skip: unavailable }, async () => {
  await using bench = await Bench.open();
  const given = script(bench, 'true', { outputPath: 'link/data' });
  symlinkSync('/tmp', bench.path('link'));
  await assert.rejects(engineOf(bench).submit('plugin', given));
  await assert.rejects(engineOf(bench).collect(given), { code: 'CODE15' });
});
