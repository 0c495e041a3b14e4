/** The processes that are measured: the server, and the bare handlers beside it, on one PostgreSQL. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { openSync, readFileSync } from 'node:fs';
import { mkdtemp, readFile, realpath, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import type { Readable } from 'node:stream';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { type EmbeddedDatabase, openEmbedded } from '../src/database/embedded.ts';

export const ADMINISTRATOR = { username: 'administrator', password: 'benchmark-administrator' };

/** A process that answers HTTP requests. */
export class Side {
  readonly url: string;
  readonly #child: ChildProcess;
  #stopping = false;

  /** @param log what is shown when the process ends too early */
  constructor(url: string, child: ChildProcess, log: string) {
    this.url = url;
    this.#child = child;
    child.once('exit', (status, signal) => {
      if (this.#stopping) return;
      const lines = readFileSync(log, 'utf8').trimEnd().split('\n').slice(-SHOWN_LOG_LINES);
      process.stderr.write(`${url} has ended (${signal ?? status}):\n${lines.join('\n')}\n`);
    });
  }

  /** Forgets how much memory the process has used at most. Only Linux tells. */
  async resetPeakMemory(): Promise<void> {
    if (process.platform === 'linux') await writeFile(`/proc/${this.#child.pid}/clear_refs`, '5');
  }

  /** The most memory that the process has had (VmHWM), in bytes; null where the system does not tell. */
  async peakMemoryBytes(): Promise<number | null> {
    if (process.platform !== 'linux') return null;
    const status = await readFile(`/proc/${this.#child.pid}/status`, 'utf8');
    return Number(/^VmHWM:\s*(\d+) kB$/m.exec(status)?.[1]) * 1024;
  }

  async stop(): Promise<void> {
    this.#stopping = true;
    if (this.#child.exitCode !== null) return;
    const ended = once(this.#child, 'exit');
    this.#child.kill('SIGTERM');
    await ended;
  }
}

/** Both sides, and the folder with everything that they write. */
export interface World {
  readonly folder: string;
  readonly server: Side;
  readonly bare: Side;
  close(): Promise<void>;
}

export async function openWorld(): Promise<World> {
  const folder = await realpath(await mkdtemp(join(tmpdir(), 'hypercube-bench-')));
  const opened: (() => Promise<void>)[] = [() => rm(folder, { recursive: true, force: true, maxRetries: 3 })];
  const close = async (): Promise<void> => {
    for (const one of opened.toReversed()) await one();
  };
  try {
    const database = await openDatabase(folder);
    opened.push(() => database.close());
    const server = await startServer(folder, database.url);
    opened.push(() => server.stop());
    const bare = await start(folder, 'bare', ['bare.ts', database.url, join(folder, 'bare')], process.env);
    opened.push(() => bare.stop());
    return { folder, server, bare, close };
  } catch (error) {
    await close();
    throw error;
  }
}

function openDatabase(folder: string): Promise<EmbeddedDatabase> {
  return openEmbedded(folder, {
    asServer: false,
    onLost: (error) => {
      throw error;
    },
  });
}

function startServer(folder: string, databaseUrl: string): Promise<Side> {
  const foreign = ([name]: [string, unknown]): boolean => !name.startsWith('HYPERCUBE_') && name !== 'DATABASE_URL';
  return start(folder, 'server', ['../src/main.ts', 'serve'], {
    ...Object.fromEntries(Object.entries(process.env).filter(foreign)),
    HYPERCUBE_DATABASE_URL: databaseUrl,
    HYPERCUBE_DATA: join(folder, 'data'),
    HYPERCUBE_PORT: '0',
    HYPERCUBE_ADMIN_USERNAME: ADMINISTRATOR.username,
    HYPERCUBE_ADMIN_PASSWORD: ADMINISTRATOR.password,
  });
}

const START_SECONDS = 60;
const SHOWN_LOG_LINES = 10;

/** Starts a program whose standard error names its address. Its standard output, a log, goes to a file. */
async function start(folder: string, name: string, program: readonly string[], env: NodeJS.ProcessEnv): Promise<Side> {
  const [script = '', ...rest] = program;
  const log = join(folder, `${name}.log`);
  const child = spawn(
    process.execPath,
    [...process.execArgv, fileURLToPath(new URL(script, import.meta.url)), ...rest],
    {
      env,
      stdio: ['ignore', openSync(log, 'w'), 'pipe'],
    },
  );
  if (child.stderr === null) throw new Error(`${name} has no standard error`);
  const origin = await Promise.race([originOf(child.stderr), sleep(START_SECONDS * 1000, null, { ref: false })]);
  if (origin !== null) return new Side(origin, child, log);
  child.kill('SIGKILL');
  throw new Error(`${name} did not start`);
}

/** Scheme, host and port of the first address that a program tells; null when it ends before. What else it says is shown. */
function originOf(output: Readable): Promise<string | null> {
  return new Promise((resolve) => {
    const lines = createInterface(output);
    lines.on('line', (line) => {
      const found = /http:\/\/127\.0\.0\.1:\d+/.exec(line);
      if (found) resolve(found[0]);
      else process.stderr.write(`${line}\n`);
    });
    lines.once('close', () => resolve(null));
  });
}
