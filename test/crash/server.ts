/** A server that can be killed and started again on the same data and port. */
import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { findPostmaster, stopPostmaster } from '../../src/database/embedded/postmaster.ts';
import { type Credentials, freePort } from '../helpers/server.ts';

const PROJECT = join(import.meta.dirname, '..', '..');
const START_SECONDS = 60;
const PRINTED_CHARACTERS = 20_000;

export class CrashServer {
  readonly url: string;
  readonly data: string;
  readonly admin: Credentials = { username: 'chris', password: 'chris1234' };
  readonly #port: number;
  #child: ChildProcess | null = null;
  #printed = '';

  private constructor(data: string, port: number) {
    this.data = data;
    this.#port = port;
    this.url = `http://127.0.0.1:${port}`;
  }

  static async create(): Promise<CrashServer> {
    return new CrashServer(await mkdtemp('/tmp/hypercube-crash-'), await freePort());
  }

  /** What all its processes have printed, as far as it is kept. */
  get printed(): string {
    return this.#printed;
  }

  /** The launcher replaces itself by the server, so this is the server's own process. */
  get processId(): number {
    return this.#child?.pid ?? 0;
  }

  get clusterFolder(): string {
    return join(this.data, 'postgres');
  }

  launch(): void {
    const child = spawn(join(PROJECT, 'hypercube'), ['serve'], {
      cwd: PROJECT,
      env: {
        ...process.env,
        HYPERCUBE_DATA: this.data,
        HYPERCUBE_PORT: String(this.#port),
        HYPERCUBE_ADMIN_PASSWORD: this.admin.password,
        HYPERCUBE_LOG_LEVEL: 'warn',
        HYPERCUBE_PROCESS_ENGINE: 'true',
        HYPERCUBE_JOB_SLOTS: '4',
      },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    for (const stream of [child.stdout, child.stderr]) {
      stream.setEncoding('utf8');
      stream.on('data', (text: string) => {
        this.#printed = (this.#printed + text).slice(-PRINTED_CHARACTERS);
      });
    }
    this.#child = child;
  }

  async untilReady(): Promise<void> {
    const deadline = Date.now() + START_SECONDS * 1000;
    while (Date.now() < deadline) {
      this.requireAlive();
      const answer = await fetch(`${this.url}/readyz`).catch(() => null);
      await answer?.arrayBuffer();
      if (answer?.ok) return;
      await pause(10);
    }
    throw new Error(`the server was not ready after ${START_SECONDS} s`);
  }

  /** @throws when the server has ended by itself */
  requireAlive(): void {
    const { exitCode, signalCode } = this.#child ?? {};
    assert.ok(exitCode === null && signalCode === null, `the server ended by itself: ${exitCode ?? signalCode}`);
  }

  async kill(): Promise<void> {
    const child = this.#child;
    if (child === null) return;
    this.#child = null;
    if (child.exitCode !== null || child.signalCode !== null) return;
    const ended = once(child, 'exit');
    child.kill('SIGKILL');
    await ended;
    await assert.rejects(fetch(`${this.url}/readyz`), 'nobody answers any more');
  }

  async killPostmaster(): Promise<void> {
    const postmaster = await findPostmaster(this.clusterFolder);
    if (postmaster !== null) process.kill(postmaster.processId, 'SIGKILL');
  }

  /** As an operator would. */
  async stop(): Promise<void> {
    const child = this.#child;
    if (child === null) return;
    const ended = once(child, 'exit');
    child.kill('SIGTERM');
    const [status] = await ended;
    this.#child = null;
    assert.equal(status, 0, 'the server stops in good order');
  }

  /** Leaves nothing behind, whatever has happened. */
  async remove(): Promise<void> {
    await this.kill();
    const postmaster = await findPostmaster(this.clusterFolder);
    if (postmaster !== null) await stopPostmaster(this.clusterFolder, postmaster);
    await rm(this.data, { recursive: true, force: true });
  }
}
