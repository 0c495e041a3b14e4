import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { existsSync, readFileSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { LOG_LIMIT_BYTES } from '../../src/compute/engine.ts';
import { CollectionFailed, ServiceRefused, SubmissionFailed } from '../../src/compute/errors.ts';
import { ProcessEngine } from '../../src/compute/process.ts';
import { Bench, ended, eventually, makeJob, silent } from './bench.ts';

const IMAGE = 'localhost/fnndsc/pl-thing:1.0';

function engineOf(bench: Bench, programs = join(bench.dataDirectory, 'programs'), enabled = true): ProcessEngine {
  const { storage, dataDirectory } = bench;
  return new ProcessEngine({ enabled, programs, storage, dataDirectory, log: silent, graceSeconds: 0.3 });
}

function job(bench: Bench, script: string, more = {}) {
  bench.program('pl-thing/thing', `#!/bin/sh\n${script}\n`);
  return makeJob(bench, { image: IMAGE, entrypoint: ['python3', '/usr/local/bin/thing'], ...more });
}

function isRunning(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return !/^State:\s*Z/m.test(readFileSync(`/proc/${pid}/status`, 'utf8'));
  } catch {
    return false;
  }
}

test('a program that is not turned on, not there, not executable or outside of the folder is refused by name', async () => {
  await using bench = await Bench.open();
  const there = job(bench, 'true');
  await assert.rejects(engineOf(bench, undefined, false).submit('plugin', there), {
    retry: false,
    message: /not turned on/,
  });
  await assert.rejects(engineOf(bench, undefined, false).describe(), ServiceRefused);
  await assert.rejects(engineOf(bench, '/no/such/folder').describe(), /no\/such\/folder/);
  const engine = engineOf(bench);
  const refusal = (message: RegExp) => (error: unknown) =>
    error instanceof SubmissionFailed && !error.retry && message.test(error.message);
  const missing = { ...there, image: 'x/pl-other:2', entrypoint: ['other'] };
  await assert.rejects(engine.submit('plugin', missing), refusal(/programs\/pl-other\/other/));
  bench.program('pl-plain/plain', 'text', 0o644);
  const plain = { ...there, image: 'pl-plain', entrypoint: ['plain'] };
  await assert.rejects(engine.submit('plugin', plain), refusal(/not executable/));
  symlinkSync('/bin/sh', join(bench.dataDirectory, 'programs/pl-plain/shell'));
  const outside = { ...there, image: 'pl-plain', entrypoint: ['shell'] };
  await assert.rejects(engine.submit('plugin', outside), refusal(/outside/));
});

test('arguments, input, environment, standard input, output and log reach their places', async () => {
  await using bench = await Bench.open();
  await bench.put('in/sub/b.txt', 'second');
  const engine = engineOf(bench);
  const given = job(
    bench,
    'echo "args:$1,$2"; cat; env; pwd; cp "$3/sub/b.txt" "$4/copy.txt"; chmod 600 "$4/copy.txt"; chmod +w "$3/sub/b.txt"; echo more >> "$3/sub/b.txt"; echo err >&2',
    { arguments: ['--dir', 'in'], pathFlags: ['--dir'], environment: { CHRIS_JID: 'j' } },
  );
  assert.equal((await engine.submit('plugin', given)).status, 'started');
  const state = await ended(engine, given);
  assert.equal(state.status, 'finishedSuccessfully', state.logs);
  assert.match(state.logs, /^args:--dir,\/.*incoming$/m);
  assert.match(state.logs, /^CHRIS_JID=j$/m);
  assert.match(state.logs, /^err$/m);
  assert.doesNotMatch(state.logs, /^USER=/m);
  assert.equal(state.command, 'python3 /usr/local/bin/thing --dir in');
  assert.ok(Date.parse(state.timestamp) > 0);
  assert.deepEqual(await engine.collect(given), ['copy.txt']);
  assert.equal(bench.read(`${given.outputPath}/copy.txt`), 'second');
  assert.equal(statSync(bench.path(`${given.outputPath}/copy.txt`)).mode & 0o777, 0o644);
  assert.equal(bench.read('in/sub/b.txt'), 'second', 'the program changes its copy only');
  assert.equal(
    (await engine.submit('plugin', given)).status,
    'finishedSuccessfully',
    'a job that ended well is not run again',
  );
  await engine.remove(given.id);
  await engine.remove(given.id);
  assert.equal(await engine.inspect('plugin', given), null);
  assert.equal(existsSync(join(bench.dataDirectory, 'jobs', given.id)), false);
});

test('scripts for node run with this node', async () => {
  await using bench = await Bench.open();
  const script =
    'import { writeFileSync } from "node:fs";\nconst out: string = String(process.argv.at(-1));\nwriteFileSync(out + "/v", process.version);';
  bench.program('pl-node/main.ts', script, 0o644);
  bench.program('pl-node/other', `#!/usr/bin/env -S node --no-warnings\n${script}`.replaceAll('out: string', 'out'));
  const engine = engineOf(bench);
  for (const entrypoint of ['main.ts', '/opt/other']) {
    const given = makeJob(bench, { image: 'pl-node', entrypoint: [entrypoint], pluginType: 'fs' });
    await engine.submit('plugin', given);
    const state = await ended(engine, given);
    assert.equal(state.status, 'finishedSuccessfully', state.logs);
    assert.equal(bench.read(`${given.outputPath}/v`), process.version);
  }
});

test('a program that fails is run again with an empty output folder when it is submitted again', async () => {
  await using bench = await Bench.open();
  const engine = engineOf(bench);
  const given = job(bench, 'ls "$2"; touch "$2/left"; echo no >&2; exit 3');
  for (let turn = 0; turn < 2; turn++) {
    await engine.submit('plugin', given);
    const state = await ended(engine, given);
    assert.equal(state.status, 'finishedWithError');
    assert.equal(state.message, 'exited with 3');
    assert.equal(state.logs, 'no\n');
  }
  assert.deepEqual(await engine.collect(given), ['left']);
});

test('a program goes on when the server is killed, and a new one finds it', async () => {
  await using bench = await Bench.open();
  const given = job(bench, 'while [ ! -e "$HOME/go" ]; do sleep 0.05; done; echo done > "$2/done"');
  const source = `
    import { Bench, makeJob, silent } from ${JSON.stringify(new URL('./bench.ts', import.meta.url).href)};
    import { ProcessEngine } from ${JSON.stringify(new URL('../../src/compute/process.ts', import.meta.url).href)};
    import { FilesystemStorage } from ${JSON.stringify(new URL('../../src/storage/filesystem.ts', import.meta.url).href)};
    const dataDirectory = ${JSON.stringify(bench.dataDirectory)};
    const storage = await FilesystemStorage.open(dataDirectory + '/files', 1);
    const engine = new ProcessEngine({ enabled: true, programs: dataDirectory + '/programs', storage, dataDirectory, log: silent });
    await engine.submit('plugin', makeJob({ storage }, ${JSON.stringify({ id: given.id, image: given.image, entrypoint: given.entrypoint })}));
    process.kill(process.pid, 'SIGKILL');`;
  writeFileSync(join(bench.dataDirectory, 'server.ts'), source);
  const server = spawn(process.execPath, [join(bench.dataDirectory, 'server.ts')], { stdio: 'inherit' });
  await new Promise<void>((resolve) => server.once('exit', () => resolve()));
  const engine = engineOf(bench);
  assert.equal((await engine.inspect('plugin', given))?.status, 'started');
  assert.equal((await engine.submit('plugin', given)).status, 'started', 'it is found, not run twice');
  const end = ended(engine, given);
  writeFileSync(join(bench.dataDirectory, 'jobs', given.id, 'home/go'), '');
  assert.equal((await end).status, 'finishedSuccessfully');
  assert.deepEqual(await engine.collect(given), ['done']);
});

test('a job whose supervisor is gone without a word is unknown, and its program is ended before it runs again', async () => {
  await using bench = await Bench.open();
  const engine = engineOf(bench);
  const given = job(bench, 'echo $$ > "$HOME/pid"; exec sleep 600');
  await engine.submit('plugin', given);
  const folder = join(bench.dataDirectory, 'jobs', given.id);
  await eventually(() => existsSync(join(folder, 'home/pid')) && existsSync(join(folder, 'program')), 'program runs');
  const pid = Number(readFileSync(join(folder, 'home/pid'), 'utf8'));
  process.kill(JSON.parse(readFileSync(join(folder, 'supervisor'), 'utf8')).pid, 'SIGKILL');
  await eventually(async () => (await engine.inspect('plugin', given)) === null, 'job unknown');
  assert.ok(isRunning(pid));
  await engine.submit('plugin', given);
  await eventually(() => !isRunning(pid), 'the old program is ended');
  // A pid that belongs to another process by now is left alone.
  writeFileSync(join(folder, 'program'), JSON.stringify({ pid: process.pid, started: 'another boot:1' }));
  await engine.cancel(given.id);
  assert.equal((await engine.inspect('plugin', given))?.status, 'finishedWithError');
});

test('cancelling ends programs that ignore SIGTERM, with all that they started', async () => {
  await using bench = await Bench.open();
  const engine = engineOf(bench);
  const given = job(
    bench,
    `trap '' TERM; (trap '' TERM; echo $$; exec sleep 600) & echo $! > "$HOME/child"; echo $$ > "$HOME/pid"; while true; do sleep 1; done`,
  );
  await engine.submit('plugin', given);
  const home = join(bench.dataDirectory, 'jobs', given.id, 'home');
  await eventually(() => existsSync(join(home, 'pid')), 'program runs');
  const pids = ['pid', 'child'].map((name) => Number(readFileSync(join(home, name), 'utf8')));
  await engine.cancel(given.id);
  for (const pid of pids) await eventually(() => !isRunning(pid), `${pid} is ended`);
  const state = await engine.inspect('plugin', given);
  assert.equal(state?.status, 'finishedWithError');
  assert.match(state?.message ?? '', /SIGKILL/);
  await engine.cancel(given.id);
  await engine.cancel('never-there');
});

test('of an endless log the end is kept', async () => {
  await using bench = await Bench.open();
  const engine = engineOf(bench);
  const given = job(bench, 'head -c 3000000 /dev/zero | tr "\\0" x; echo; echo the end');
  await engine.submit('plugin', given);
  const state = await ended(engine, given);
  assert.equal(state.status, 'finishedSuccessfully');
  assert.equal(Buffer.byteLength(state.logs), LOG_LIMIT_BYTES);
  assert.match(state.logs, /x\nthe end\n$/);
  assert.ok(statSync(join(bench.dataDirectory, 'jobs', given.id, 'log')).size <= 2 * LOG_LIMIT_BYTES);
});

test('a symbolic link out of the output folder fails the job, again and again, and nothing is left of it', async () => {
  await using bench = await Bench.open();
  const engine = engineOf(bench);
  const given = job(bench, 'echo a > "$2/a"; ln -s /etc/passwd "$2/secret"; mkfifo "$2/pipe"');
  await engine.submit('plugin', given);
  assert.equal((await ended(engine, given)).status, 'finishedSuccessfully');
  for (let turn = 0; turn < 2; turn++) {
    await assert.rejects(
      engine.collect(given),
      (error) => error instanceof CollectionFailed && error.code === 'CODE17' && /"secret"/.test(error.message),
    );
  }
  const left = [];
  for await (const file of bench.storage.list(given.outputPath, (special) => left.push(special))) left.push(file.path);
  assert.deepEqual(left, [`${given.outputPath}/a`]);
});

test('input that is not in storage is named', async () => {
  await using bench = await Bench.open();
  const engine = engineOf(bench);
  const given = job(bench, 'true', {
    stagedInputs: async function* () {
      yield { relativePath: 'x', storagePath: 'in/gone', sizeBytes: 1 };
    },
  });
  await assert.rejects(engine.submit('plugin', given), { retry: false, message: /"in\/gone" is not in storage/ });
});
