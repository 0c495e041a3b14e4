import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { mkdtemp, readFile, rm, stat } from 'node:fs/promises';
import { type ClientRequest, type IncomingMessage, request } from 'node:http';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { after, before, test } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import { isAlive } from '../../src/database/embedded/cluster.ts';
import { freePort, startServer, type TestServer } from '../helpers/server.ts';

const PROGRAM = join(import.meta.dirname, '../../hypercube');

let data: string;
before(async () => {
  data = await mkdtemp('/tmp/hypercube-cli-');
});
after(() => rm(data, { recursive: true, force: true }));

interface Outcome {
  readonly status: number | null;
  readonly output: string;
  readonly errors: string;
}

async function hypercube(parameters: string[], env: Record<string, string> = {}, input = ''): Promise<Outcome> {
  const child = spawn(PROGRAM, parameters, { env: { ...process.env, HYPERCUBE_DATA: data, ...env } });
  child.stdin.end(input);
  const [output, errors] = await Promise.all([text(child.stdout), text(child.stderr), once(child, 'exit')]);
  return { status: child.exitCode, output, errors };
}

async function tokenStatus({ url }: { url: string }, username: string, password: string): Promise<number> {
  const body = JSON.stringify({ username, password });
  const headers = { 'content-type': 'application/json' };
  return (await fetch(`${url}/api/v1/auth-token/`, { method: 'POST', headers, body })).status;
}

async function postmasterId(folder: string): Promise<number> {
  return Number((await readFile(join(folder, 'postgres/postmaster.pid'), 'utf8')).split('\n')[0]);
}

/** Whatever follows: a server on `data`, ended at the end. */
async function withServer(work: (server: TestServer) => Promise<void>, settings: Record<string, string> = {}) {
  const server = await startServer(settings, data);
  try {
    await work(server);
  } finally {
    await server.close();
  }
}

test('wrong settings are told at once, before anything is made', async () => {
  const folder = join(data, 'unused');
  const wrong = { HYPERCUBE_DATA: folder, HYPERCUBE_PORT: 'x', HYPERCUBE_PROT: '1' };
  const { status, errors } = await hypercube(['serve'], wrong);
  assert.equal(status, 1);
  assert.match(errors, /HYPERCUBE_PORT holds "x"/);
  assert.match(errors, /HYPERCUBE_PROT is not a setting/);
  assert.equal(existsSync(folder), false);
});

test('an unknown command is an error that suggests the right one', async () => {
  const { status, errors } = await hypercube(['srve']);
  assert.notEqual(status, 0);
  assert.match(errors, /serve/);
});

for (const parameters of [
  [],
  ['serve'],
  ['worker'],
  ['migrate'],
  ['demo'],
  ['user', 'create'],
  ['plugin', 'add'],
  ['compute', 'add'],
]) {
  test(`hypercube ${parameters.join(' ')} --help`, async () => {
    const { status, output } = await hypercube([...parameters, '--help']);
    assert.equal(status, 0);
    assert.match(output, /Usage: hypercube/);
  });
}

test('an account can be made before the first start, and the generated password opens the first one', async () => {
  const { status, output, errors } = await hypercube(
    ['user', 'create', 'anna', '--email', 'anna@example.org'],
    {},
    'a password\n',
  );
  assert.equal(status, 0, errors);
  assert.match(output, /"anna"/);
  const kept = (await readFile(join(data, 'admin-password'), 'utf8')).trim();
  assert.ok(errors.includes(kept));
  assert.equal((await stat(join(data, 'admin-password'))).mode & 0o777, 0o600);
  assert.equal(existsSync(join(data, 'postgres/postmaster.pid')), false);
  await withServer(async (server) => {
    assert.equal(await tokenStatus(server, 'chris', kept), 200);
    assert.equal(await tokenStatus(server, 'anna', 'a password'), 200);
    assert.ok(!server.output().includes(kept), 'the password is shown once');
  });
});

test('what an account lacks is told field by field, and nothing is made', async () => {
  const { status, errors } = await hypercube(['user', 'create', 'a/b', '--email', 'nowhere'], {}, 'short\n');
  assert.equal(status, 1);
  for (const field of ['username', 'email', 'password']) assert.match(errors, new RegExp(`^  ${field}: `, 'm'));
});

test('commands work beside a running server', async () => {
  await withServer(async (server) => {
    const changed = await hypercube(['user', 'password', 'anna'], {}, 'another password\n');
    assert.equal(changed.status, 0, changed.errors);
    assert.equal(await tokenStatus(server, 'anna', 'another password'), 200);
    assert.equal(await tokenStatus(server, 'anna', 'a password'), 400);
    assert.equal((await hypercube(['user', 'promote', 'anna'])).status, 0);
    assert.equal((await hypercube(['user', 'promote', 'nobody'])).status, 1);
  });
});

test('a second server on the same data, or on the same port, is refused and leaves the first alone', async () => {
  await withServer(async (server) => {
    const sameData = await hypercube(['serve'], { HYPERCUBE_PORT: String(await freePort()) });
    assert.equal(sameData.status, 1);
    assert.match(sameData.errors, /Another server is running/);
    const other = join(data, 'other');
    const samePort = await hypercube(['serve'], { HYPERCUBE_DATA: other, HYPERCUBE_PORT: new URL(server.url).port });
    assert.equal(samePort.status, 1);
    assert.match(samePort.errors, /set HYPERCUBE_PORT/);
    assert.equal(existsSync(join(other, 'postgres/postmaster.pid')), false);
    assert.equal((await fetch(`${server.url}/readyz`)).status, 200);
  });
});

test('the server ends in order at a signal, and nothing stays behind', async () => {
  const server = await startServer({}, data);
  const postmaster = await postmasterId(data);
  server.process.kill('SIGINT');
  assert.deepEqual(await once(server.process, 'exit'), [0, null]);
  assert.equal(isAlive(postmaster), false);
  assert.equal(existsSync(join(data, 'postgres/postmaster.pid')), false);
  await assert.rejects(fetch(`${server.url}/readyz`));
});

test('a server that was killed is followed by one that goes on with the same data', async () => {
  const killed = await startServer({}, data);
  killed.process.kill('SIGKILL');
  await once(killed.process, 'exit');
  await withServer(async (server) => {
    assert.equal(await tokenStatus(server, 'anna', 'another password'), 200);
  });
});

test('the server ends with status 1 when its database goes', async () => {
  const server = await startServer({}, data);
  process.kill(await postmasterId(data), 'SIGQUIT');
  assert.deepEqual(await once(server.process, 'exit'), [1, null]);
});

const BOUNDARY = 'between-the-parts';

/** An upload whose last bytes are still to be sent. */
function beginUpload(url: string, path: string): ClientRequest {
  const headers = {
    authorization: `Basic ${btoa('anna:another password')}`,
    'content-type': `multipart/form-data; boundary=${BOUNDARY}`,
  };
  const upload = request(`${url}/api/v1/userfiles/`, { method: 'POST', headers });
  const part = (name: string, more: string): string =>
    `--${BOUNDARY}\r\nContent-Disposition: form-data; name="${name}"${more}\r\n\r\n`;
  upload.write(`${part('upload_path', '')}${path}\r\n${part('fname', '; filename="a.txt"')}first half, `);
  return upload;
}

test('a request that is running when the server is told to end is answered', async () => {
  const server = await startServer({}, data);
  const upload = beginUpload(server.url, 'home/anna/uploads/late.txt');
  const answer = Promise.withResolvers<IncomingMessage>();
  upload.once('response', answer.resolve).once('error', answer.reject);
  await pause(300);
  server.process.kill('SIGTERM');
  const ended = once(server.process, 'exit');
  await pause(300);
  assert.equal(server.process.exitCode, null);
  upload.end(`second half\r\n--${BOUNDARY}--\r\n`);
  const response = await answer.promise;
  assert.equal(response.statusCode, 201, await text(response));
  assert.deepEqual(await ended, [0, null]);
});

test('a request that takes too long does not hold the server up', async () => {
  const server = await startServer({ HYPERCUBE_SHUTDOWN_SECONDS: '1' }, data);
  const upload = beginUpload(server.url, 'home/anna/uploads/never.txt');
  const cut = once(upload, 'error');
  await pause(300);
  server.process.kill('SIGTERM');
  assert.deepEqual(await once(server.process, 'exit'), [0, null]);
  await cut;
});
