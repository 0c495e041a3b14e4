/**
 * A process of its own between the server and a plugin's program. It outlives the server, keeps the program's log within
 * bounds, and writes down how the program ended. Its order comes over standard input, because it holds secrets: an order that
 * is cut short (the server died) starts nothing.
 *
 * Files in the job folder
 *   program   identity of the program's process
 *   log       end of its output
 *   exit      how it ended; there when it has ended, written at once
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { fsyncSync, openSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { BoundedLog } from './bounded-log.ts';
import { identify, signalSession } from './process-identity.ts';
import { type ExitRecord, parseOrder, type SupervisorOrder } from './supervisor-files.ts';

/** How long output may still come from processes that the program left behind, in milliseconds. */
const DRAIN_MILLISECONDS = 1000;

async function main(): Promise<void> {
  const order = parseOrder(await text(process.stdin));
  const startedAt = new Date().toISOString();
  const log = new BoundedLog(join(order.folder, 'log'), order.logLimitBytes);
  const program = spawn(order.command, order.arguments, {
    cwd: order.workingDirectory,
    env: { ...order.environment },
    stdio: ['ignore', 'pipe', 'pipe'],
    // A session of its own: all that it starts can be ended with it.
    detached: true,
  });
  program.stdout.on('data', (chunk: Buffer) => log.write(chunk));
  program.stderr.on('data', (chunk: Buffer) => log.write(chunk));
  endOnRequest(program, order);
  const ending = waitForEnd(program);
  const identity = program.pid === undefined ? null : identify(program.pid);
  if (identity) writeFileSync(join(order.folder, 'program'), JSON.stringify(identity), { mode: 0o600 });
  const end = await ending;
  if (identity) signalSession(identity, 'SIGKILL');
  await drained(program);
  log.close();
  writeExit(order, { ...end, startedAt, endedAt: new Date().toISOString() });
}

function endOnRequest(program: ChildProcess, order: SupervisorOrder): void {
  process.on('SIGHUP', () => {});
  process.on('SIGINT', () => {});
  process.on('SIGTERM', () => {
    const identity = program.pid === undefined ? null : identify(program.pid);
    if (identity === null) return;
    signalSession(identity, 'SIGTERM');
    setTimeout(() => signalSession(identity, 'SIGKILL'), order.graceSeconds * 1000).unref();
  });
}

type End = Pick<ExitRecord, 'code' | 'signal' | 'error'>;

function waitForEnd(program: ChildProcess): Promise<End> {
  return new Promise((resolve) => {
    program.once('error', (error) => resolve({ code: null, signal: null, error: error.message }));
    program.once('exit', (code, signal) => resolve({ code, signal, error: null }));
  });
}

function drained(program: ChildProcess): Promise<void> {
  return new Promise((resolve) => {
    if (program.stdout?.closed !== false && program.stderr?.closed !== false) resolve();
    program.once('close', () => resolve());
    setTimeout(resolve, DRAIN_MILLISECONDS);
  });
}

function writeExit(order: SupervisorOrder, record: ExitRecord): void {
  const next = join(order.folder, 'exit.next');
  const file = openSync(next, 'w', 0o600);
  writeFileSync(file, JSON.stringify(record));
  fsyncSync(file);
  renameSync(next, join(order.folder, 'exit'));
  process.exit();
}

await main();
