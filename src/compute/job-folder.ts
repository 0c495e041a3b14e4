/** Where an engine keeps what belongs to one job: `<data>/jobs/<job id>/`. */
import { chmod, lstat, mkdir, readdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { ComputeError } from './errors.ts';

export class JobFolders {
  readonly #root: string;

  constructor(dataDirectory: string) {
    this.#root = join(dataDirectory, 'jobs');
  }

  /** @throws {ComputeError} for an id that could name another folder. */
  path(jobId: string): string {
    if (!/^[A-Za-z0-9][A-Za-z0-9_.-]*$/.test(jobId)) {
      throw new ComputeError(
        `"${jobId}" is not a job id: letters, digits, "_", "." and "-", beginning with a letter or digit`,
      );
    }
    return join(this.#root, jobId);
  }

  /** Makes the folder, readable by the server only, and answers its path. */
  async make(jobId: string): Promise<string> {
    const path = this.path(jobId);
    await mkdir(path, { recursive: true, mode: 0o700 });
    return path;
  }

  /** Removes the folder with everything in it. Nothing there is success. */
  async remove(jobId: string): Promise<void> {
    const path = this.path(jobId);
    try {
      await rm(path, { recursive: true, force: true });
    } catch {
      // A program may have closed folders of its own; open them and try once more.
      await openFolders(path);
      await rm(path, { recursive: true, force: true });
    }
  }
}

async function openFolders(path: string): Promise<void> {
  if (!(await lstat(path)).isDirectory()) return;
  await chmod(path, 0o700);
  for (const entry of await readdir(path, { withFileTypes: true })) {
    if (entry.isDirectory()) await openFolders(join(path, entry.name));
  }
}
