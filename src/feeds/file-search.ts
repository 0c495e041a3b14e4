/** Finding feeds by the names of their files. */
import { sql } from 'kysely';
import { invalid } from '../hypermedia/errors.ts';
import { type Filter, likePattern, special } from '../hypermedia/filters.ts';

function wordPatterns(text: string, name: string): readonly string[] {
  if (text.includes('\0')) throw invalid(name, 'Null characters are not allowed.');
  return text.split(/\s+/).map((word) => `%${likePattern(word)}%`);
}

/**
 * Feeds with a file below their folder whose full path contains all of the words, ignoring case. Each feed's folders are a
 * range of the index on paths; the first file that fits ends the search of the feed. (An `exists` may be turned into a join with
 * all files; this form may not.)
 */
export function hasFileWithWords(name: string): Filter {
  return special(
    name,
    'string',
    wordPatterns,
    (patterns) => sql`(
      select true from folder top
      join folder inside on inside.path >= top.path and inside.path < top.path || '0'
      join file x on x.folder_id = inside.id
      where top.id = f.folder_id
        and (inside.path = top.path or starts_with(inside.path, top.path || '/'))
        and inside.path || '/' || x.name ilike all (${patterns}::text[])
      limit 1) is true`,
  );
}
