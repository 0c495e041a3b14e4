/** Puts a job's input where its program reads it, and empties the folder that it writes to. */
import { constants } from 'node:fs';
import { chmod, copyFile, link, lstat, mkdir, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { errorCode } from '../storage/errors.ts';
import type { Storage } from '../storage/storage.ts';
import type { InputFile, Job } from './engine.ts';
import { ComputeError, SubmissionFailed } from './errors.ts';

/** `copy`: files of its own. `link`: hard links where possible; only for programs that cannot write to them. */
export type StagingMode = 'copy' | 'link';

const READABLE_BY_ALL = 0o004;

/**
 * Stages the inputs of a job into an existing empty folder.
 * @throws {SubmissionFailed}
 */
export async function stageInputs(job: Job, storage: Storage, folder: string, mode: StagingMode): Promise<void> {
  for await (const input of job.stagedInputs()) {
    const target = join(folder, checkedRelativePath(input.relativePath));
    try {
      await mkdir(dirname(target), { recursive: true });
      await stageFile(input, storage, target, mode);
    } catch (error) {
      throw stagingFailure(error, input);
    }
  }
}

/**
 * The absolute path of the folder that is the whole input of a job as it lies in storage, or null when the input has to be
 * put together: several paths, link files, or files that a program of another user could not read.
 */
export async function folderToMount(job: Job, storage: Storage): Promise<string | null> {
  const [inputPath, ...others] = job.inputPaths;
  if (inputPath === undefined || others.length > 0) return null;
  const folder = storage.localPath(inputPath);
  if (folder === null) return null;
  let staged = 0;
  for await (const input of job.stagedInputs()) {
    if (input.storagePath !== `${inputPath}/${input.relativePath}`) return null;
    const status = await lstat(join(folder, input.relativePath)).catch(() => null);
    if (!status?.isFile() || !(status.mode & READABLE_BY_ALL)) return null;
    staged++;
  }
  // A file that is in the folder but not in the input must not be seen either.
  for await (const _file of storage.list(inputPath)) staged--;
  return staged === 0 && (await lstat(folder).catch(() => null))?.isDirectory() ? folder : null;
}

/**
 * Makes the output folder empty, as every run begins, and answers its absolute path.
 * @throws {SubmissionFailed} when storage has no folders on this machine
 */
export async function emptyOutputFolder(job: Job, storage: Storage): Promise<string> {
  await storage.remove(job.outputPath);
  await storage.makeFolder(job.outputPath);
  return localOutputFolder(job, storage);
}

/** @throws {SubmissionFailed} when storage has no folders on this machine */
export function localOutputFolder(job: Job, storage: Storage): string {
  let path: string | null;
  try {
    path = storage.localPath(job.outputPath);
  } catch (error) {
    throw new SubmissionFailed(`the output folder cannot be used: ${reasonOf(error)}`, false);
  }
  if (path === null) {
    throw new SubmissionFailed('this kind of compute resource needs storage in a file system of the server', false);
  }
  return path;
}

async function stageFile(input: InputFile, storage: Storage, target: string, mode: StagingMode): Promise<void> {
  if (input.storagePath === null) {
    await writeFile(target, input.content ?? '', { mode: 0o444 });
    return;
  }
  const source = storage.localPath(input.storagePath);
  if (source === null) throw new ComputeError('its bytes are not in a file system of the server');
  const status = await lstat(source);
  if (!status.isFile()) throw new ComputeError('it is not a plain file');
  const canBeShared = mode === 'link' && (status.mode & READABLE_BY_ALL) !== 0;
  if (canBeShared && (await tryLink(source, target))) return;
  await copyFile(source, target, constants.COPYFILE_FICLONE | constants.COPYFILE_EXCL);
  await chmod(target, 0o444);
}

/** False where a hard link is impossible: another device, too many links, or a file of another user. */
async function tryLink(source: string, target: string): Promise<boolean> {
  try {
    await link(source, target);
    return true;
  } catch (error) {
    if (['EXDEV', 'EMLINK', 'EPERM'].includes(errorCode(error))) return false;
    throw error;
  }
}

function checkedRelativePath(path: string): string {
  const isSafe = path !== '' && path.split('/').every((part) => part !== '' && part !== '.' && part !== '..');
  if (!isSafe || path.includes('\0')) throw new SubmissionFailed(`input file "${path}" has an impossible path`, false);
  return path;
}

function stagingFailure(error: unknown, input: InputFile): SubmissionFailed {
  if (error instanceof SubmissionFailed) return error;
  const name = input.storagePath ?? input.relativePath;
  if (errorCode(error) === 'ENOENT') return new SubmissionFailed(`input file "${name}" is not in storage`, false);
  const isFull = ['ENOSPC', 'EDQUOT'].includes(errorCode(error));
  const reason = isFull ? 'there is no space left on the disk of the server' : reasonOf(error);
  return new SubmissionFailed(`input file "${name}" could not be staged: ${reason}`, isFull);
}

function reasonOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
