/**
 * Makes the output folder of a finished program safe to read: only plain files and folders, all of them the server's.
 *
 * A symbolic link to something in the folder becomes a copy of it; one that leads out of the folder fails the job (CODE17);
 * devices, sockets and pipes are removed. The program must have ended: nothing else may change the folder meanwhile.
 */
import { constants } from 'node:fs';
import {
  chmod,
  copyFile,
  lchown,
  lstat,
  mkdir,
  readdir,
  readFile,
  readlink,
  realpath,
  unlink,
  writeFile,
} from 'node:fs/promises';
import { dirname, join } from 'node:path';
import type { Logger } from 'pino';
import type { Storage } from '../storage/storage.ts';
import type { Job } from './engine.ts';
import { CollectionFailed } from './errors.ts';
import type { JobFolders } from './job-folder.ts';
import { resolveLink } from './output-links.ts';

const FILE_MODE = 0o644;
const FOLDER_MODE = 0o755;

export interface SecuredOutput {
  /** Paths of all files below the folder, sorted. */
  readonly files: readonly string[];
  /** What was removed or replaced, for the log. */
  readonly notes: readonly string[];
}

export interface Collecting {
  readonly job: Job;
  readonly storage: Storage;
  readonly folders: JobFolders;
  readonly log: Logger;
}

/**
 * Secures the output folder of a job that ran on this machine and lists its files.
 * @param names further absolute paths by which the program knew the folder
 * @throws {CollectionFailed} CODE15 when there is no such folder, and as `secureOutput`
 */
export async function collectOutput(collecting: Collecting, names: readonly string[]): Promise<readonly string[]> {
  const { job, storage, folders, log } = collecting;
  let root: string | null = null;
  try {
    const path = storage.localPath(job.outputPath);
    root = path === null ? null : await realpath(path);
  } catch (error) {
    throw new CollectionFailed(`the output folder is not there: ${describe(error)}`, 'CODE15');
  }
  if (root === null) throw new CollectionFailed('storage is not in a file system of the server', 'CODE15');
  const failureRecord = join(await folders.make(job.id), 'collect-failure');
  const { files, notes } = await secureOutput({ root, names, failureRecord });
  if (notes.length > 0) log.warn({ job: job.id, notes }, 'output was cleaned');
  return files;
}

interface Found {
  readonly files: Set<string>;
  readonly folders: Set<string>;
  readonly links: Map<string, string>;
  readonly specials: Set<string>;
}

export interface OutputFolder {
  /** Absolute path of the folder. */
  readonly root: string;
  /** Further absolute paths by which the program knew the folder. */
  readonly names: readonly string[];
  /** File, outside of the folder, that remembers a failure, so that the same call again fails again. */
  readonly failureRecord: string;
}

/**
 * @throws {CollectionFailed} CODE17 for links out of the folder (they are removed first), CODE06 for what cannot be read
 */
export async function secureOutput(output: OutputFolder): Promise<SecuredOutput> {
  const { root } = output;
  const earlier = await readIfThere(output.failureRecord);
  if (earlier !== null) throw new CollectionFailed(earlier, 'CODE17');
  const found: Found = { files: new Set(), folders: new Set(), links: new Map(), specials: new Set() };
  try {
    await walk(root, '', found);
  } catch (error) {
    throw new CollectionFailed(`the output folder could not be read: ${describe(error)}`, 'CODE06');
  }
  const notes: string[] = [];
  for (const path of found.specials) {
    await unlink(join(root, path));
    notes.push(`removed "${path}": neither a file nor a folder`);
  }
  await replaceLinks(output, found, notes);
  return { files: [...found.files].sort(), notes };
}

async function walk(root: string, folder: string, found: Found): Promise<void> {
  const absolute = join(root, folder);
  await takeOver(absolute, FOLDER_MODE);
  for (const entry of await readdir(absolute, { withFileTypes: true })) {
    const path = folder === '' ? entry.name : `${folder}/${entry.name}`;
    if (entry.isDirectory()) {
      found.folders.add(path);
      await walk(root, path, found);
    } else if (entry.isSymbolicLink()) {
      found.links.set(path, await readlink(join(root, path)));
    } else if (entry.isFile()) {
      await takeOver(join(root, path), FILE_MODE);
      found.files.add(path);
    } else {
      found.specials.add(path);
    }
  }
}

/** Gives a file or folder to the server's own user, with its usual mode. */
async function takeOver(path: string, mode: number): Promise<void> {
  const status = await lstat(path);
  const uid = process.getuid?.();
  const gid = process.getgid?.();
  if (uid === 0 && gid !== undefined && (status.uid !== uid || status.gid !== gid)) await lchown(path, uid, gid);
  const isOurs = uid === undefined || uid === 0 || uid === status.uid;
  if (isOurs && (status.mode & 0o7777) !== mode) await chmod(path, mode);
}

async function replaceLinks(output: OutputFolder, found: Found, notes: string[]): Promise<void> {
  const { root, names, failureRecord } = output;
  const folder = {
    links: found.links,
    entries: new Set([...found.files, ...found.folders]),
    names: [root, ...names],
  };
  const resolved = [...found.links].map(([path, text]) => ({ path, text, target: resolveLink(path, folder) }));
  // Only what the program wrote as files is copied, so that links to links cannot multiply.
  const originals = [...found.files];
  const escaping = resolved.filter(({ target }) => target.kind === 'outside');
  const [first] = escaping;
  const others = escaping.length > 1 ? ` (and ${escaping.length - 1} more like it)` : '';
  const failure =
    first &&
    `the program made a symbolic link "${first.path}" to "${first.text}", which is outside of its output folder${others}; links must stay within it`;
  if (failure !== undefined) await writeFile(failureRecord, failure);
  for (const { path } of resolved) await unlink(join(root, path));
  if (failure !== undefined) throw new CollectionFailed(failure, 'CODE17');
  for (const { path, target } of resolved) {
    if (target.kind !== 'inside') {
      notes.push(`removed the symbolic link "${path}": it leads to no file`);
      continue;
    }
    for (const source of originals) {
      const isTarget = source === target.path;
      if (!isTarget && !source.startsWith(`${target.path}/`)) continue;
      const copy = isTarget ? path : `${path}${source.slice(target.path.length)}`;
      await mkdir(dirname(join(root, copy)), { recursive: true });
      await copyFile(join(root, source), join(root, copy), constants.COPYFILE_FICLONE | constants.COPYFILE_EXCL);
      found.files.add(copy);
    }
    notes.push(`replaced the symbolic link "${path}" by a copy of "${target.path}"`);
  }
}

async function readIfThere(path: string): Promise<string | null> {
  try {
    return await readFile(path, 'utf8');
  } catch {
    return null;
  }
}

function describe(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
