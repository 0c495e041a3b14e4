/** The files of the embedded database: made once, completely or not at all. */
import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { chown, mkdir, open, readdir, readFile, rename, rm } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { DatabaseError } from '../errors.ts';
import type { Account } from './account.ts';
import { type Binaries, isCode, messageOf } from './binaries.ts';

const run = promisify(execFile);
const MAJOR_VERSION = '18';
export const SUPERUSER = 'hypercube';

/** Makes the cluster if there is none; `folder` appears only when it is complete and on the disk. */
export async function ensureCluster(folder: string, binaries: Binaries, account: Account): Promise<void> {
  const version = await readVersion(folder);
  if (version === null) return makeCluster(folder, binaries, account);
  if (version !== MAJOR_VERSION) {
    throw new DatabaseError(
      `${folder} was made by PostgreSQL ${version}, and this program has PostgreSQL ${MAJOR_VERSION}. ` +
        `Use the program's version that made it, or move the data with pg_upgrade.`,
    );
  }
}

async function readVersion(folder: string): Promise<string | null> {
  try {
    return (await readFile(join(folder, 'PG_VERSION'), 'utf8')).trim();
  } catch (error) {
    if (isCode(error, 'ENOENT')) return null;
    throw error;
  }
}

async function makeCluster(folder: string, binaries: Binaries, account: Account): Promise<void> {
  const parent = dirname(folder);
  await removeUnfinished(folder);
  const unfinished = `${folder}.new-${process.pid}`;
  await mkdir(unfinished, { mode: 0o700 });
  if (account.ownerId !== null) await chown(unfinished, account.ownerId, account.ownerId);
  const { program, parameters } = account.command(binaries.initdb, [
    `--pgdata=${unfinished}`,
    `--username=${SUPERUSER}`,
    '--encoding=UTF8',
    // byte order and Unicode case folding, on every machine alike
    '--locale-provider=builtin',
    '--builtin-locale=C.UTF-8',
    '--locale=C',
    // who may connect is decided by the rights of the socket's folder
    '--auth=trust',
    '--no-instructions',
  ]);
  try {
    // initdb flushes its files itself
    await run(program, [...parameters], account.spawnOptions);
    await rename(unfinished, folder);
    await flushFolder(parent);
  } catch (cause) {
    await rm(unfinished, { recursive: true, force: true });
    // another process was quicker
    if (isCode(cause, 'ENOTEMPTY') || isCode(cause, 'EEXIST')) return;
    throw new DatabaseError(`The database could not be made in ${folder}: ${reasonOf(cause)}`, { cause });
  }
}

/** What a program that failed has written, without the command line that the error's own message begins with. */
function reasonOf(error: unknown): string {
  const written = error instanceof Error && 'stderr' in error ? String(error.stderr).trim() : '';
  return written === '' ? messageOf(error) : written;
}

/** Removes what processes that are gone left half-made. */
async function removeUnfinished(folder: string): Promise<void> {
  const parent = dirname(folder);
  for (const name of await readdir(parent)) {
    const path = join(parent, name);
    if (!path.startsWith(`${folder}.new-`)) continue;
    const processId = Number(path.slice(`${folder}.new-`.length));
    if (processId === process.pid || !isAlive(processId)) await rm(path, { recursive: true, force: true });
  }
}

/** Whether a process runs; not when it has ended and nobody has collected it yet. */
export function isAlive(processId: number): boolean {
  if (!isTaken(processId)) return false;
  if (process.platform !== 'linux') return true;
  try {
    // after the name, which is in brackets and may hold any character
    return !/\) [ZX] [^)]*$/.test(readFileSync(`/proc/${processId}/stat`, 'latin1'));
  } catch {
    // gone meanwhile, unless processes of others cannot be seen here
    return isTaken(processId);
  }
}

/** Whether a number is that of a process, running or ended and not collected. */
export function isTaken(processId: number): boolean {
  if (!Number.isSafeInteger(processId) || processId <= 1) return false;
  try {
    process.kill(processId, 0);
    return true;
  } catch (error) {
    return isCode(error, 'EPERM');
  }
}

async function flushFolder(path: string): Promise<void> {
  const handle = await open(path);
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}
