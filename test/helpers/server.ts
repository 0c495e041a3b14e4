/** The real server as a child process of a test: a temporary data directory, a free port, a known administrator. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';

export interface Credentials {
  readonly username: string;
  readonly password: string;
}

export interface TestServer {
  readonly url: string;
  readonly admin: Credentials;
  readonly dataDirectory: string;
  readonly process: ChildProcess;
  /** What the server has printed so far. */
  readonly output: () => string;
  /** Ends the server as an operator would, and removes its data. */
  close(): Promise<void>;
}

const PROJECT = join(import.meta.dirname, '..', '..');
const START_SECONDS = 60;

export async function freePort(): Promise<number> {
  const server = createServer();
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  server.close();
  if (address === null || typeof address === 'string') throw new Error('no free port was given');
  return address.port;
}

async function untilReady(url: string, child: ChildProcess, output: () => string): Promise<void> {
  const deadline = Date.now() + START_SECONDS * 1000;
  while (Date.now() < deadline) {
    if (child.exitCode !== null) throw new Error(`the server ended with status ${child.exitCode}:\n${output()}`);
    const answer = await fetch(`${url}/readyz`).catch(() => null);
    if (answer?.ok) return;
    await pause(50);
  }
  throw new Error(`the server was not ready after ${START_SECONDS} s:\n${output()}`);
}

async function stop(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const ended = once(child, 'exit');
  child.kill('SIGTERM');
  await ended;
}

/** @param settings further `HYPERCUBE_…` variables @param dataDirectory of an earlier server, kept when this one closes */
export async function startServer(
  settings: Readonly<Record<string, string>> = {},
  dataDirectory?: string,
): Promise<TestServer> {
  const data = dataDirectory ?? (await mkdtemp('/tmp/hypercube-test-'));
  const port = await freePort();
  const admin = { username: 'chris', password: 'chris1234' };
  const environment = {
    ...process.env,
    HYPERCUBE_DATA: data,
    HYPERCUBE_PORT: String(port),
    HYPERCUBE_ADMIN_PASSWORD: admin.password,
    HYPERCUBE_LOG_LEVEL: 'warn',
    ...settings,
  };
  const child = spawn(join(PROJECT, 'hypercube'), ['serve'], {
    cwd: PROJECT,
    env: environment,
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let printed = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8');
    stream.on('data', (text: string) => {
      printed = (printed + text).slice(-100_000);
    });
  }
  const url = `http://127.0.0.1:${port}`;
  const output = (): string => printed;
  const close = async (): Promise<void> => {
    await stop(child);
    if (dataDirectory === undefined) await rm(data, { recursive: true, force: true });
  };
  try {
    await untilReady(url, child, output);
  } catch (error) {
    await close();
    throw error;
  }
  return { url, admin, dataDirectory: data, process: child, output, close };
}
