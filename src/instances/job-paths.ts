/** Which paths may be given to jobs (`files.md` section 8). */
import { sql } from 'kysely';
import type { CallerSql } from '../access/caller.ts';
import { readFile, readFolder, readLinkFile } from '../access/files.ts';
import type { Transaction } from '../database/database.ts';
import { invalid } from '../hypermedia/errors.ts';

/** Links in these folders only say what was shared or published. */
const LINKS_TO_NOTHING_OF_THEIR_OWN = ['PUBLIC', 'SHARED'];

/** Paths separated by commas, each without blanks and slashes around. */
export function readPathList(list: string): readonly string[] {
  return list.split(',').map((path) => path.trim().replace(/^\/+|\/+$/g, ''));
}

function problemOf(path: string): string | null {
  const [top = '', , second, ...rest] = path.split('/');
  if (!path.includes('/')) return 'has fewer than two components';
  if (!['home', 'SERVICES', 'PIPELINES'].includes(top)) return 'does not begin with home, SERVICES or PIPELINES';
  if (top === 'home' && (second === undefined || (second === 'feeds' && rest.length === 0))) return 'holds too much';
  return null;
}

/**
 * The paths among those given that lead to nothing that the caller may read. A path is that of a folder, a file or a link
 * file, letter by letter.
 */
async function unreadable(
  transaction: Transaction,
  caller: CallerSql,
  paths: readonly string[],
): Promise<readonly string[]> {
  const given = paths.map((path) => ({ path, slash: path.lastIndexOf('/') }));
  const { rows } = await sql<{ path: string }>`
    select given.path
    from unnest(${paths}::text[], ${given.map(({ path, slash }) => path.slice(0, slash))}::text[],
      ${given.map(({ path, slash }) => path.slice(slash + 1))}::text[]) as given(path, folder_path, name)
    where not exists (select from folder d where d.path = given.path and ${readFolder('d', caller)})
      and not exists (select from folder d join file x on x.folder_id = d.id
        where d.path = given.folder_path and x.name = given.name and ${readFile('x', caller)})
      and not exists (select from folder d join link_file l on l.folder_id = d.id
        where d.path = given.folder_path and l.name = given.name and ${readLinkFile('l', caller)}
          and l.target_path <> all (${LINKS_TO_NOTHING_OF_THEIR_OWN}::text[]))`.execute(transaction);
  return rows.map(({ path }) => path);
}

/** @throws {InvalidFields} naming `value` */
export async function requireJobPaths(
  transaction: Transaction,
  caller: CallerSql,
  paths: readonly string[],
): Promise<void> {
  for (const path of paths) {
    const problem = problemOf(path);
    if (problem) throw invalid('value', `The path "${path.slice(0, 200)}" ${problem}.`);
  }
  const [missing] = await unreadable(transaction, caller, paths);
  if (missing !== undefined) {
    throw invalid('value', `There is no file or folder "${missing.slice(0, 200)}" that you may read.`);
  }
}
