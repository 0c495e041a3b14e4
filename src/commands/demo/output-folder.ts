/** The folder that the demo downloads to. It never touches files that it did not write itself. */
import { mkdir, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { dirname, join, relative, resolve, sep } from 'node:path';

/** Lists what an earlier demo wrote, a path a line. */
const RECORD = '.hypercube-demo';

export class OutputFolder {
  readonly path: string;
  readonly #written: string[] = [];

  private constructor(path: string) {
    this.path = path;
  }

  /** Takes the folder if it is new, empty or left by an earlier demo; else the first such of `<folder>-2`, `<folder>-3`, … */
  static async open(wanted: string): Promise<OutputFolder> {
    for (let number = 1; ; number++) {
      const path = resolve(number === 1 ? wanted : `${wanted}-${number}`);
      await mkdir(path, { recursive: true });
      if (await makeFree(path)) return new OutputFolder(path);
    }
  }

  /** Absolute path for a file, with the folders above it made. @throws when the path leads out of the folder. */
  async place(relativePath: string): Promise<string> {
    const target = resolve(this.path, relativePath);
    if (!target.startsWith(`${this.path}${sep}`))
      throw new Error(`the file ${relativePath} lies outside of the output`);
    await mkdir(dirname(target), { recursive: true });
    this.#written.push(relativePath);
    await writeFile(join(this.path, RECORD), `${this.#written.join('\n')}\n`);
    return target;
  }
}

/** Removes what an earlier demo left. @returns false, with nothing touched, when there are other files. */
async function makeFree(path: string): Promise<boolean> {
  const record = await readFile(join(path, RECORD), 'utf8').catch(() => '');
  const own = new Set([RECORD, ...record.split('\n')]);
  const entries = await readdir(path, { recursive: true, withFileTypes: true });
  const files = entries.filter((entry) => !entry.isDirectory()).map((entry) => join(entry.parentPath, entry.name));
  if (files.some((file) => !own.has(relative(path, file)))) return false;
  for (const entry of await readdir(path)) await rm(join(path, entry), { recursive: true });
  return true;
}
