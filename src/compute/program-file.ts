/** Finds the program file of a plugin that runs as a process: `<directory>/<image name>/<selfexec>`. */
import { access, constants, open, realpath, stat } from 'node:fs/promises';
import { isAbsolute, join, posix, sep } from 'node:path';
import type { Job } from './engine.ts';
import { SubmissionFailed } from './errors.ts';
import { programName } from './image-name.ts';

/** What to start, without the arguments of the job. */
export interface ProgramCommand {
  readonly command: string;
  readonly arguments: readonly string[];
}

const NODE_FILE = /\.(ts|mts|js|mjs|cjs)$/;

/**
 * The directory of `process:<directory>`, or null when that is no absolute path. Percent escapes are decoded.
 */
export function programDirectory(computeUrl: string): string | null {
  const encoded = /^process:(?:\/\/(?=\/))?(.*)$/s.exec(computeUrl)?.[1];
  if (encoded === undefined) return null;
  try {
    const directory = decodeURIComponent(encoded);
    return isAbsolute(directory) && !directory.includes('\0') ? directory : null;
  } catch {
    return null;
  }
}

/** @throws {SubmissionFailed} naming the path that was looked for */
export async function findProgram(directory: string, job: Job): Promise<ProgramCommand> {
  const file = posix.basename(job.entrypoint.at(-1) ?? '');
  const path = join(directory, programName(job.image), file);
  const refuse = (reason: string) =>
    new SubmissionFailed(`the program of image "${job.image}" ${reason}: ${path}`, false);
  if (programName(job.image) === '' || file === '' || file === '.' || file === '..') throw refuse('has no usable name');
  const real = await realpath(path).catch(() => null);
  if (real === null) throw refuse('was looked for but is not there');
  if (!real.startsWith(`${await realpath(directory)}${sep}`)) throw refuse('is outside of the programs directory');
  if (!(await stat(real)).isFile()) throw refuse('is not a file');
  if (NODE_FILE.test(real) || (await startsWithNode(real))) return { command: process.execPath, arguments: [real] };
  const isExecutable = await access(real, constants.X_OK).then(
    () => true,
    () => false,
  );
  if (!isExecutable) throw refuse('is not executable');
  return { command: real, arguments: [] };
}

/** Whether the first line is a `#!` line that names node. */
async function startsWithNode(path: string): Promise<boolean> {
  const file = await open(path);
  try {
    const { buffer, bytesRead } = await file.read(Buffer.alloc(256), 0, 256, 0);
    const [firstLine = ''] = buffer.toString('latin1', 0, bytesRead).split('\n');
    return /^#!.*\bnode\b/.test(firstLine);
  } finally {
    await file.close();
  }
}
