/** The running PostgreSQL of a data folder: found, started, stopped. It outlives us when we are killed, and is found then. */
import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { chmod, chown, lstat, mkdir, open, readFile, readlink, rename, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { DatabaseError } from '../errors.ts';
import { type Account, isOurs } from './account.ts';
import { type Binaries, isCode, messageOf } from './binaries.ts';
import { isAlive, isTaken } from './cluster.ts';

/** Bytes of a socket's path that all systems allow (`sun_path` has 104 on macOS, the final NUL included). */
const SOCKET_PATH_BYTES = 103;
const SOCKET_NAME = '.s.PGSQL.5432';
const LOG_BYTES = 10 * 1024 * 1024;
/** A process id that no system gives. */
const NO_PROCESS = 2 ** 31 - 1;
const STOP_SECONDS = 60;
const EXIT_SECONDS = 2;

export interface Postmaster {
  readonly processId: number;
  readonly socketFolder: string;
  /** null: it was started by a process that is gone. */
  readonly child: ChildProcess | null;
}

/** For a small machine; what is not named here has PostgreSQL's own default, and so does everything about durability. */
const SERVER_SETTINGS = {
  listen_addresses: '',
  unix_socket_permissions: '0700',
  max_connections: '100',
  shared_buffers: '128MB',
  timezone: 'UTC',
  log_timezone: 'UTC',
  // queries are short, and files lie on solid-state disks
  jit: 'off',
  random_page_cost: '1.1',
  log_checkpoints: 'off',
  log_line_prefix: '%m [%p] ',
};

export type ServerSettings = Readonly<Record<string, string>>;

/** The one that serves a cluster's folder, or null. A file that a crash left behind counts for nothing. */
export async function findPostmaster(folder: string): Promise<Postmaster | null> {
  const file = join(folder, 'postmaster.pid');
  const content = await readIfThere(file);
  if (content === undefined) return null;
  const lines = content.split('\n');
  const processId = Number(lines[0]);
  const socketFolder = lines[4] ?? '';
  if (await servesFolder(processId, folder))
    return socketFolder === '' ? null : { processId, socketFolder, child: null };
  // Only the number is changed: by the other lines PostgreSQL sees whether processes of the one that is gone still work.
  if (isTaken(processId)) await writeFile(file, [NO_PROCESS, ...lines.slice(1)].join('\n'));
  return null;
}

/** PostgreSQL takes a lock for held as long as its number is that of a process: of another program, or of one that nobody has collected. */
async function removeStaleSocketLock(folder: string, socketFolder: string): Promise<void> {
  const lock = join(socketFolder, `${SOCKET_NAME}.lock`);
  const processId = Number((await readIfThere(lock))?.split('\n')[0]);
  if (isTaken(processId) && !(await servesFolder(processId, folder))) await rm(lock, { force: true });
}

async function servesFolder(processId: number, folder: string): Promise<boolean> {
  if (!isAlive(processId)) return false;
  try {
    if (process.platform === 'linux') {
      const [actual, expected] = await Promise.all([stat(await readlink(`/proc/${processId}/cwd`)), stat(folder)]);
      return actual.ino === expected.ino && actual.dev === expected.dev;
    }
    return execFileSync('ps', ['-o', 'comm=', '-p', String(processId)], { encoding: 'utf8' }).includes('postgres');
  } catch {
    // gone, or another user's
    return false;
  }
}

/** Starts PostgreSQL; it may not answer yet. It is not in our process group, so that Ctrl-C reaches us first. */
export async function startPostmaster(
  folder: string,
  binaries: Binaries,
  account: Account,
  settings: ServerSettings,
): Promise<Postmaster> {
  const socketFolder = await makeSocketFolder(folder, account);
  const assignments = Object.entries({ ...SERVER_SETTINGS, ...settings, unix_socket_directories: socketFolder });
  const { program, parameters } = account.command(binaries.postgres, [
    '-D',
    folder,
    ...assignments.flatMap(([name, value]) => ['-c', `${name}=${value}`]),
  ]);
  await removeStaleSocketLock(folder, socketFolder);
  const log = await openLog(folder);
  try {
    const child = spawn(program, [...parameters], {
      ...account.spawnOptions,
      cwd: '/',
      detached: true,
      stdio: ['ignore', log.fd, log.fd],
    });
    await new Promise<void>((started, failed) => {
      child.once('spawn', started).once('error', failed);
    });
    child.unref();
    if (child.pid === undefined) throw new DatabaseError('PostgreSQL was started without a process id.');
    return { processId: child.pid, socketFolder, child };
  } catch (cause) {
    throw new DatabaseError(`PostgreSQL could not be started: ${messageOf(cause)}`, { cause });
  } finally {
    await log.close();
  }
}

export function hasStopped(postmaster: Postmaster): boolean {
  if (postmaster.child !== null) return postmaster.child.exitCode !== null || postmaster.child.signalCode !== null;
  return !isAlive(postmaster.processId);
}

/** Ends all sessions, writes everything down and waits until the process is gone. */
export async function stopPostmaster(folder: string, postmaster: Postmaster): Promise<void> {
  const { processId, socketFolder } = postmaster;
  for (const signal of ['SIGINT', 'SIGQUIT'] as const) {
    if (!hasStopped(postmaster)) process.kill(processId, signal);
    if (await waitForEnd(folder, postmaster)) {
      if (!socketFolder.startsWith(folder)) await rm(socketFolder, { recursive: true, force: true });
      return;
    }
  }
  throw new DatabaseError(`PostgreSQL (process ${processId}) does not stop.`);
}

/** Waits for a postmaster that is already stopping. False: it is still there after a minute. */
export async function waitForEnd(folder: string, postmaster: Postmaster): Promise<boolean> {
  let deadline = Date.now() + STOP_SECONDS * 1000;
  let fileGone = false;
  while (Date.now() < deadline) {
    if (hasStopped(postmaster)) return true;
    await sleep(10);
    if (fileGone || (await readIfThere(join(folder, 'postmaster.pid'))) !== undefined) continue;
    // Removed at its very end. In a container nobody may collect an adopted process that has ended, so this has to do.
    fileGone = true;
    deadline = Date.now() + EXIT_SECONDS * 1000;
  }
  return fileGone;
}

/** Whether PostgreSQL did not start because processes of one that was killed still work on the cluster. */
export async function isHeldByOrphans(folder: string): Promise<boolean> {
  return (await readLogEnd(folder)).includes('pre-existing shared memory block');
}

/** The last lines of the server's log, for error messages. */
export async function readLogEnd(folder: string): Promise<string> {
  const text = (await readIfThere(logPath(folder))) ?? '';
  return text.trimEnd().split('\n').slice(-5).join('\n');
}

function logPath(folder: string): string {
  return `${folder}.log`;
}

async function openLog(folder: string) {
  const path = logPath(folder);
  try {
    if ((await stat(path)).size > LOG_BYTES) await rename(path, `${path}.old`);
  } catch (error) {
    if (!isCode(error, 'ENOENT')) throw error;
  }
  return open(path, 'a', 0o600);
}

/** Beside the cluster when the path is short enough, else in the system's temporary folder; open to its owner only. */
async function makeSocketFolder(folder: string, account: Account): Promise<string> {
  const near = `${folder}.socket`;
  const key = createHash('sha256').update(folder).digest('hex').slice(0, 16);
  const fits = Buffer.byteLength(join(near, SOCKET_NAME)) <= SOCKET_PATH_BYTES;
  const chosen = fits ? near : join(tmpdir(), `hypercube-${key}`);
  await mkdir(chosen, { recursive: true, mode: 0o700 });
  const { uid } = await lstat(chosen);
  if (!isOurs(uid)) throw new DatabaseError(`${chosen} belongs to the user ${uid}; it should be ours. Remove it.`);
  await chmod(chosen, 0o700);
  if (account.ownerId !== null) await chown(chosen, account.ownerId, account.ownerId);
  return chosen;
}

async function readIfThere(path: string): Promise<string | undefined> {
  try {
    return await readFile(path, 'utf8');
  } catch (error) {
    if (isCode(error, 'ENOENT')) return undefined;
    throw error;
  }
}
