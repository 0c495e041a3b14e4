/** Removal of whole folders, rows and bytes. */
import { type RawBuilder, type SqlBool, sql } from 'kysely';
import type { Queries, Transaction } from '../database/database.ts';
import type { Services } from '../services.ts';
import { changeStorage, recoverIntents } from '../storage/intents.ts';

/** Whether link files elsewhere that point into a removed folder go with it. */
export type Links = 'with links to them' | 'without links to them';

/**
 * Removes folders with all that lies in them.
 * @param first what goes with them, in the same transaction and before the folders
 */
export async function removeTrees(
  services: Services,
  paths: readonly string[],
  links: Links,
  first: (transaction: Transaction) => Promise<void> = async () => {},
): Promise<void> {
  const linkPaths = links === 'with links to them' ? await linksInto(services.database, paths) : [];
  const changes = [...paths, ...linkPaths].map((path) => ({ kind: 'remove', path }) as const);
  await changeStorage(services, changes, async (transaction) => {
    await first(transaction);
    await deleteTreeRows(transaction, paths, links);
  });
}

/** Removes all that lies in a folder; the folder's own row stays. */
export async function removeContents(services: Services, path: string): Promise<void> {
  await changeStorage(services, [{ kind: 'remove', path }], async (transaction) => {
    await lockFolders(transaction, [path]);
    await deleteFileRows(transaction, sql`select id from folder where ${atOrBelow(sql`path`, [path])}`);
    await deleteFolderRows(transaction, sql`select id from folder where ${below(sql`path`, path)}`);
  });
}

/**
 * Removes the rows of folders and of all that lies in them in a transaction that cannot wait for storage.
 * Afterwards the task `removeFromStorage` removes the bytes. Nothing new may come to lie at these paths.
 */
export async function removeTreesLater(
  transaction: Transaction,
  paths: readonly string[],
  links: Links,
): Promise<void> {
  const linkPaths = links === 'with links to them' ? await linksInto(transaction, paths) : [];
  await deleteTreeRows(transaction, paths, links);
  const removed = [...paths, ...linkPaths].map((path) => ({ kind: 'remove', from_path: path, process_id: NO_PROCESS }));
  if (removed.length > 0) await transaction.insertInto('storage_intent').values(removed).execute();
}

/** The task `removeFromStorage`. */
export async function removeFromStorage(services: Services): Promise<void> {
  await recoverIntents(services, []);
}

/** Of an intent that has been committed and that no process is at: whoever settles intents next carries it out. */
const NO_PROCESS = 0;

/** Ranges, which an index on the path serves. */
function below(column: RawBuilder<unknown>, path: string): RawBuilder<SqlBool> {
  return sql`(${column} > ${`${path}/`} and ${column} < ${`${path}0`})`;
}

function atOrBelow(column: RawBuilder<unknown>, paths: readonly string[]): RawBuilder<SqlBool> {
  if (paths.length === 0) return sql`false`;
  const each = paths.map((path) => sql`${column} = ${path} or ${below(column, path)}`);
  return sql`(${sql.join(each, sql` or `)})`;
}

/** Two who remove the same folders, such as a clean-up and a deletion, do so one after the other. */
async function lockFolders(transaction: Transaction, paths: readonly string[]): Promise<void> {
  await sql`select from folder where ${atOrBelow(sql`path`, paths)} order by id for update`.execute(transaction);
}

async function deleteTreeRows(transaction: Transaction, paths: readonly string[], links: Links): Promise<void> {
  await lockFolders(transaction, paths);
  if (links === 'with links to them') {
    await sql`
      with gone as (delete from link_file where ${atOrBelow(sql`target_path`, paths)} returning acl_id)
      delete from acl where id in (select acl_id from gone)`.execute(transaction);
  }
  const folders = sql`select id from folder where ${atOrBelow(sql`path`, paths)}`;
  await deleteFileRows(transaction, folders);
  await deleteFolderRows(transaction, folders);
}

async function deleteFileRows(transaction: Transaction, folderIds: RawBuilder<unknown>): Promise<void> {
  await sql`
    with place as materialized (${folderIds}),
      gone_files as (delete from file where folder_id in (select id from place) returning acl_id),
      gone_links as (delete from link_file where folder_id in (select id from place) returning acl_id)
    delete from acl where id in (select acl_id from gone_files union all select acl_id from gone_links)`.execute(
    transaction,
  );
}

async function deleteFolderRows(transaction: Transaction, folderIds: RawBuilder<unknown>): Promise<void> {
  await sql`
    with gone as (delete from folder where id in (${folderIds}) returning acl_id)
    delete from acl where id in (select acl_id from gone)`.execute(transaction);
}

/** Paths of the link files that point to or into folders. */
async function linksInto(database: Queries, paths: readonly string[]): Promise<string[]> {
  const { rows } = await sql<{ path: string }>`
    select folder.path || '/' || link_file.name as path from link_file join folder on folder.id = link_file.folder_id
    where ${atOrBelow(sql`link_file.target_path`, paths)}
      and not ${atOrBelow(sql`folder.path`, paths)}`.execute(database);
  return rows.map(({ path }) => path);
}
