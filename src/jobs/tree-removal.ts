/** Removal of whole folders: the rows in one transaction with a note of the bytes that go, then the bytes. */
import { type RawBuilder, type SqlBool, sql } from 'kysely';
import type { Transaction } from '../database/database.ts';
import type { Services } from '../services.ts';

export type Links = 'with links to them' | 'without links to them';

/** A note of bytes that are to be removed; see `storage_intent`. */
export interface Removal {
  readonly id: number;
  readonly from_path: string | null;
}

/** Of a note that no process owns: a job of the queue carries it out. */
export const NO_PROCESS = 0;

/** Rows whose path is one of these or lies below; written as ranges, which an index on the path serves. */
function atOrBelow(column: RawBuilder<unknown>, paths: readonly string[]): RawBuilder<SqlBool> {
  const ranges = paths.map(
    (path) => sql`${column} = ${path} or (${column} > ${`${path}/`} and ${column} < ${`${path}0`})`,
  );
  return ranges.length === 0 ? sql`false` : sql`(${sql.join(ranges, sql` or `)})`;
}

/**
 * Removes folders with all that lies in them.
 * @param links whether link files elsewhere that point into them go too
 * @param first what goes with them, in the same transaction and before the folders
 */
export async function removeTrees(
  services: Services,
  paths: readonly string[],
  links: Links,
  first: (transaction: Transaction) => Promise<void> = async () => {},
): Promise<void> {
  const removals = await services.database.transaction().execute(async (transaction) => {
    await first(transaction);
    return deleteTreeRows(transaction, services.process.id, paths, links);
  });
  for (const removal of removals) await carryOut(services, removal);
}

/**
 * Removes the rows of folders and of all that lies in them.
 * @returns what is to be removed from storage when the transaction is committed
 */
export async function deleteTreeRows(
  transaction: Transaction,
  processId: number,
  paths: readonly string[],
  links: Links,
): Promise<readonly Removal[]> {
  const linkPaths = links === 'with links to them' ? await deleteLinksInto(transaction, paths) : [];
  await deleteRows(transaction, sql`select id from folder where ${atOrBelow(sql`path`, paths)}`, 'with folders');
  return noteRemovals(transaction, processId, [...paths, ...linkPaths]);
}

/** Removes all that lies in a folder; the folder's own row stays. */
export async function removeContents(services: Services, path: string): Promise<void> {
  const removals = await services.database.transaction().execute(async (transaction) => {
    const below = sql`select id from folder where path > ${`${path}/`} and path < ${`${path}0`}`;
    await deleteRows(transaction, sql`select id from folder where ${atOrBelow(sql`path`, [path])}`, 'without folders');
    await deleteRows(transaction, below, 'with folders');
    return noteRemovals(transaction, services.process.id, [path]);
  });
  for (const removal of removals) await carryOut(services, removal);
}

async function deleteRows(
  transaction: Transaction,
  folderIds: RawBuilder<unknown>,
  extent: 'with folders' | 'without folders',
): Promise<void> {
  const emptied = extent === 'with folders' ? sql`select id from place` : sql`select null::bigint`;
  await sql`
    with place as materialized (${folderIds}),
      gone_files as (delete from file where folder_id in (select id from place) returning acl_id),
      gone_links as (delete from link_file where folder_id in (select id from place) returning acl_id),
      gone_folders as (delete from folder where id in (${emptied}) returning acl_id)
    delete from acl where id in (
      select acl_id from gone_files union all select acl_id from gone_links union all select acl_id from gone_folders
    )`.execute(transaction);
}

/** Paths of the link files that went. */
async function deleteLinksInto(transaction: Transaction, paths: readonly string[]): Promise<string[]> {
  const { rows } = await sql<{ path: string }>`
    with gone as (delete from link_file where ${atOrBelow(sql`target_path`, paths)} returning folder_id, name, acl_id),
      gone_lists as (delete from acl where id in (select acl_id from gone))
    select folder.path || '/' || gone.name as path from gone join folder on folder.id = gone.folder_id`.execute(
    transaction,
  );
  return rows.map(({ path }) => path);
}

async function noteRemovals(transaction: Transaction, processId: number, paths: readonly string[]): Promise<Removal[]> {
  if (paths.length === 0) return [];
  return transaction
    .insertInto('storage_intent')
    .values(paths.map((path) => ({ kind: 'remove', from_path: path, process_id: processId })))
    .returning(['id', 'from_path'])
    .execute();
}

/** The task `removeFromStorage`: what a transaction that could not wait for storage has left to do. */
export async function removeFromStorage(
  { services }: { readonly services: Services },
  intentId: number,
): Promise<void> {
  const removal = await services.database
    .selectFrom('storage_intent')
    .select(['id', 'from_path'])
    .where('id', '=', intentId)
    .where('kind', '=', 'remove')
    .executeTakeFirst();
  if (removal !== undefined) await carryOut(services, removal);
}

async function carryOut({ database, storage }: Services, { id, from_path: path }: Removal): Promise<void> {
  if (path !== null) await storage.remove(path);
  await database.deleteFrom('storage_intent').where('id', '=', id).execute();
}
