/**
 * The tasks `deleteInstance`, `deleteFeed` and `deleteFolder`. Requests have marked and cancelled what goes (`instances/deletion.ts`); here jobs
 * are removed from their compute resources, then all rows go in one transaction, then the bytes.
 */
import { sql } from 'kysely';
import { removeTrees } from '../files/tree-removal.ts';
import { deleteInstanceRows, instanceFolders, withDescendants } from '../instances/folders.ts';
import { cancelFeed, cancelTree } from '../instances/transitions.ts';
import { cleanUpNow } from './cleanup.ts';
import type { JobContext } from './context.ts';

export async function deleteInstance(context: JobContext, instanceId: number): Promise<void> {
  const { database } = context.services;
  await database.transaction().execute((transaction) => cancelTree(transaction, instanceId));
  const tree = withDescendants(sql`select ${instanceId}::bigint`);
  await cleanUpNow(context, tree);
  const folders = await instanceFolders(database, tree);
  await removeTrees(context.services, folders, 'with links to them', (transaction) =>
    deleteInstanceRows(transaction, tree),
  );
}

export async function deleteFeed(context: JobContext, feedId: number): Promise<void> {
  const { services } = context;
  const { database } = services;
  await database.transaction().execute((transaction) => cancelFeed(transaction, feedId));
  const instances = sql`select id from plugin_instance where feed_id = ${feedId}`;
  await cleanUpNow(context, instances);
  const feed = await database
    .selectFrom('feed')
    .leftJoin('folder', 'folder.id', 'feed.folder_id')
    .select('path')
    .where('feed.id', '=', feedId)
    .executeTakeFirst();
  if (feed === undefined) return;
  const folders = [...(await instanceFolders(database, instances)), ...(feed.path === null ? [] : [feed.path])];
  await removeTrees(services, folders, 'with links to them', async (transaction) => {
    await deleteInstanceRows(transaction, instances);
    await transaction.deleteFrom('feed').where('id', '=', feedId).execute();
  });
}

export async function deleteFolder(context: JobContext, folderId: number): Promise<void> {
  const { services } = context;
  const folder = await services.database
    .selectFrom('folder')
    .select('path')
    .where('id', '=', folderId)
    .where('deletion_status', '=', 'pending')
    .executeTakeFirst();
  if (folder === undefined) return;
  await deleteDependents(context, folder.path);
  await removeTrees(services, [folder.path], 'without links to them');
}

/** Feeds and instances whose folders go have nothing left to be. */
async function deleteDependents(context: JobContext, path: string): Promise<void> {
  const inside = sql`select id from folder where path = ${path} or (path > ${`${path}/`} and path < ${`${path}0`})`;
  const feeds = await sql<{ id: number }>`select id from feed where folder_id in (${inside})`.execute(
    context.services.database,
  );
  for (const { id } of feeds.rows) await deleteFeed(context, id);
  const instances = await sql<{ id: number }>`
    select id from plugin_instance where output_folder_id in (${inside})`.execute(context.services.database);
  for (const { id } of instances.rows) await deleteInstance(context, id);
}

/** Says on the row that a deletion has been given up. */
export async function deletionFailed(
  { services }: JobContext,
  table: 'plugin_instance' | 'feed' | 'folder',
  id: number,
  reason: string,
): Promise<void> {
  await services.database
    .updateTable(table)
    .set({ deletion_status: 'failed', deletion_error: reason })
    .where('id', '=', id)
    .where('deletion_status', '=', 'pending')
    .execute();
}
