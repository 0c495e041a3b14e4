/** Filters on whole paths that only files have. */
import { type RawBuilder, sql } from 'kysely';
import { type Filter, likePattern, special } from '../hypermedia/filters.ts';

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
