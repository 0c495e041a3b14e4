/** The folders that belong to plugin instances. */
import { type RawBuilder, sql } from 'kysely';
import type { Queries } from '../database/database.ts';

/** Ids of instances and of all that descends from them by `previous`. */
export function withDescendants(roots: RawBuilder<unknown>): RawBuilder<unknown> {
  return sql`
    with recursive tree(id) as (
      select id from plugin_instance where id in (${roots})
      union
      select child.id from plugin_instance child join tree on child.previous_id = tree.id
    ) select id from tree`;
}

/**
 * Paths of the folders of instances: `…/<plugin>_<id>` around the output folder, or the output folder alone where a user has
 * moved it elsewhere. Those that lie in others of them are left out.
 */
export async function instanceFolders(database: Queries, ids: RawBuilder<unknown>): Promise<string[]> {
  const { rows } = await sql<{ path: string }>`
    select distinct case when around.name = meta.name || '_' || i.id then around.path else output.path end as path
    from plugin_instance i
      join folder output on output.id = i.output_folder_id
      join folder around on around.id = output.parent_id
      join plugin on plugin.id = i.plugin_id
      join plugin_meta meta on meta.id = plugin.meta_id
    where i.id in (${ids})
    order by path`.execute(database);
  const outermost: string[] = [];
  for (const { path } of rows) {
    if (!outermost.some((other) => path.startsWith(`${other}/`))) outermost.push(path);
  }
  return outermost;
}

export async function deleteInstanceRows(database: Queries, ids: RawBuilder<unknown>): Promise<void> {
  await sql`delete from plugin_instance where id in (${ids})`.execute(database);
}
