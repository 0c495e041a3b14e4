/** Filters on whole paths that only files (`x` in the folder `d`) have. */
import { type RawBuilder, sql } from 'kysely';
import { type Filter, likePattern, parseText, special } from '../hypermedia/filters.ts';
import { folderOf, nameOf } from './paths.ts';
import { FNAME } from './resources.ts';

/** The whole path. */
export function exactPath(name: string): Filter {
  return special(
    name,
    'string',
    (text) => [parseText(text, name), folderOf(text), nameOf(text)],
    (parts) =>
      sql`${FNAME} = (${parts}::text[])[1] and d.path = (${parts}::text[])[2] and x.name = (${parts}::text[])[3]`,
  );
}

/** The beginning of the path, case-sensitive. The folders below the last one that it names are a range of the index on paths. */
export function beginningOfPath(name: string): Filter {
  return special(
    name,
    'string',
    (text) => {
      const folder = folderOf(text);
      // `0` comes after `/`
      const end = folder === '' ? '\u{10ffff}' : `${folder}0`;
      return [`${likePattern(parseText(text, name))}%`, folder, end];
    },
    (parts) =>
      sql`${FNAME} like (${parts}::text[])[1] and d.path >= (${parts}::text[])[2] and d.path < (${parts}::text[])[3]`,
  );
}

/** Words apart by white space, all of them in the path, ignoring case. */
export function allWords(name: string, path: RawBuilder<unknown>): Filter {
  return special(
    name,
    'string',
    (text) =>
      text
        .replaceAll('\0', '')
        .split(/\s+/)
        .map((word) => `%${likePattern(word)}%`),
    (patterns) => sql`${path} ilike all (${patterns}::text[])`,
  );
}

/**
 * Number of slashes in the path; with a `u` behind the number, of each folder only the file that comes first in the list.
 * Anything else does not filter.
 */
export function oneOfEachFolder(name: string, path: RawBuilder<unknown>): Filter {
  return special(
    name,
    'string',
    (text) => (/^\d{1,4}[uU]?$/.test(text) ? text : undefined),
    (value) => sql`(length(${path}) - length(replace(${path}, '/', '')) = rtrim(${value}::text, 'uU')::integer
      and (right(${value}::text, 1) not in ('u', 'U')
        or not exists (select from file later where later.folder_id = x.folder_id and later.owner_id = x.owner_id and later.name > x.name)))`,
  );
}
