/** The real server as a child process of the demo, with a data directory that goes away with it. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, realpath, rm } from 'node:fs/promises';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { CommandError } from '../failure.ts';
import { findContainerEngine, removeContainersOf } from './container-engine.ts';

/** The server did not start, or did not end as it should; the message has the end of its log. */
export class ServerFailed extends CommandError {
  override readonly name = 'ServerFailed';
}

export interface ServerOptions {
  readonly administrator: { readonly username: string; readonly password: string };
  /** Whether its plugins may run in containers, which must not outlive it. */
  readonly usesContainers: boolean;
}

const PROGRAM = fileURLToPath(new URL('../../main.ts', import.meta.url));
const START_LIMIT_SECONDS = 60;
const STOP_LIMIT_SECONDS = 30;
const LOG_CHARACTERS = 20_000;
const SHOWN_LOG_LINES = 15;

export class ServerProcess {
  readonly baseUrl: string;
  readonly #child: ChildProcess;
  readonly #dataDirectory: string;
  readonly #usesContainers: boolean;
  readonly #log: { text: string };

  private constructor(baseUrl: string, child: ChildProcess, dataDirectory: string, usesContainers: boolean) {
    this.baseUrl = baseUrl;
    this.#child = child;
    this.#dataDirectory = dataDirectory;
    this.#usesContainers = usesContainers;
    this.#log = collectOutput(child);
  }

  /** Starts the server and waits until it is ready. @throws {ServerFailed} */
  static async start(options: ServerOptions, signal: AbortSignal): Promise<ServerProcess> {
    const dataDirectory = await realpath(await mkdtemp(join(tmpdir(), 'hypercube-demo-')));
    const port = await freePort();
    // A session of its own: Ctrl-C reaches the demo only, which then ends the server in order.
    const child = spawn(process.execPath, [PROGRAM, 'serve'], {
      detached: true,
      stdio: ['ignore', 'pipe', 'pipe'],
      env: serverEnvironment({ dataDirectory, port, administrator: options.administrator }),
    });
    const server = new ServerProcess(`http://127.0.0.1:${port}`, child, dataDirectory, options.usesContainers);
    try {
      await once(child, 'spawn');
      await server.#ready(signal);
      return server;
    } catch (error) {
      // That it ends badly after a bad start is no news.
      await server.stop().catch(() => {});
      throw error;
    }
  }

  /** Ends the server and removes its data. @throws {ServerFailed} when it did not end by itself with status 0. */
  async stop(): Promise<void> {
    try {
      await this.#end();
    } finally {
      const engine = this.#usesContainers ? await findContainerEngine(process.env) : null;
      if (engine) await removeContainersOf(this.#dataDirectory, engine);
      await rm(this.#dataDirectory, { recursive: true, force: true, maxRetries: 3 });
    }
  }

  async #end(): Promise<void> {
    if (!this.#hasEnded()) {
      const ended = once(this.#child, 'exit');
      this.#child.kill('SIGTERM');
      const inTime = await Promise.race([
        ended.then(() => true),
        sleep(STOP_LIMIT_SECONDS * 1000, false, { ref: false }),
      ]);
      if (!inTime) {
        this.#child.kill('SIGKILL');
        await ended;
      }
    }
    const { exitCode, signalCode } = this.#child;
    if (exitCode !== 0) throw this.#failure(`the server did not end cleanly (${signalCode ?? `status ${exitCode}`})`);
  }

  async #ready(signal: AbortSignal): Promise<void> {
    const deadline = Date.now() + START_LIMIT_SECONDS * 1000;
    while (!(await this.#answers(signal))) {
      if (this.#hasEnded()) throw this.#failure('the server ended at its start');
      if (Date.now() > deadline) throw this.#failure(`the server was not ready within ${START_LIMIT_SECONDS} s`);
      await sleep(50, undefined, { signal });
    }
  }

  async #answers(signal: AbortSignal): Promise<boolean> {
    try {
      const response = await fetch(`${this.baseUrl}/readyz`, { signal });
      return response.ok;
    } catch {
      signal.throwIfAborted();
      return false;
    }
  }

  #hasEnded(): boolean {
    return this.#child.exitCode !== null || this.#child.signalCode !== null;
  }

  #failure(reason: string): ServerFailed {
    const lines = this.#log.text.trimEnd().split('\n').slice(-SHOWN_LOG_LINES);
    return new ServerFailed(`${reason}. The end of its log:\n${lines.join('\n')}`);
  }
}

/** The demo's own settings only: what the operator has set for a real server must not count. */
function serverEnvironment(own: {
  dataDirectory: string;
  port: number;
  administrator: ServerOptions['administrator'];
}): NodeJS.ProcessEnv {
  const inherited = Object.entries(process.env).filter(
    ([name]) => !name.startsWith('HYPERCUBE_') && name !== 'DATABASE_URL',
  );
  return {
    ...Object.fromEntries(inherited),
    HYPERCUBE_DATA: own.dataDirectory,
    HYPERCUBE_HOST: '127.0.0.1',
    HYPERCUBE_PORT: String(own.port),
    HYPERCUBE_PROCESS_ENGINE: 'true',
    HYPERCUBE_ADMIN_USERNAME: own.administrator.username,
    HYPERCUBE_ADMIN_PASSWORD: own.administrator.password,
  };
}

/** Keeps the end of what the server writes; reading it all keeps the pipes from filling up. */
function collectOutput(child: ChildProcess): { text: string } {
  const log = { text: '' };
  for (const stream of [child.stdout, child.stderr]) {
    stream?.setEncoding('utf8').on('data', (piece: string) => {
      log.text = (log.text + piece).slice(-LOG_CHARACTERS);
    });
  }
  return log;
}

async function freePort(): Promise<number> {
  const probe = createServer().listen(0, '127.0.0.1');
  await once(probe, 'listening');
  const address = probe.address();
  probe.close();
  await once(probe, 'close');
  if (address === null || typeof address === 'string') throw new ServerFailed('no free port was found');
  return address.port;
}
