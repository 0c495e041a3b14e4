/** Requests to delete instances and feeds: they are marked and stopped at once, and deleted in the background. */
import { sql } from 'kysely';
import type { Transaction } from '../database/database.ts';
import { enqueue } from '../database/queue.ts';
import { removeTreesLater } from '../files/tree-removal.ts';
import { deleteInstanceRows, instanceFolders, withDescendants } from './folders.ts';
import { cancelFeed, cancelTree } from './transitions.ts';

/** Marks an instance for deletion and cancels it with all that depends on it. Again while pending: nothing changes. */
export async function requestInstanceDeletion(transaction: Transaction, instanceId: number): Promise<void> {
  const marked = await transaction
    .updateTable('plugin_instance')
    .set({ deletion_status: 'pending', deletion_requested_at: sql<string>`now()`, deletion_error: '' })
    .where('id', '=', instanceId)
    .where('deletion_status', '!=', 'pending')
    .executeTakeFirst();
  if (marked.numUpdatedRows === 0n) return;
  await cancelTree(transaction, instanceId);
  await enqueue(transaction, 'deleteInstance', { instanceId });
}

/** Marks a feed for deletion and cancels all its instances. Again while pending: nothing changes. */
export async function requestFeedDeletion(transaction: Transaction, feedId: number): Promise<void> {
  const marked = await transaction
    .updateTable('feed')
    .set({ deletion_status: 'pending', deletion_requested_at: sql<string>`now()`, deletion_error: '' })
    .where('id', '=', feedId)
    .where('deletion_status', '!=', 'pending')
    .executeTakeFirst();
  if (marked.numUpdatedRows === 0n) return;
  await cancelFeed(transaction, feedId);
  await enqueue(transaction, 'deleteFeed', { feedId });
}

/**
 * Deletes all instances of a plugin with all that descends from them, whoever they belong to. Jobs are ended and bytes are
 * removed in the background.
 * @returns the ids of the instances that went
 */
export async function deleteInstancesOfPlugin(transaction: Transaction, pluginId: number): Promise<number[]> {
  const own = await transaction.selectFrom('plugin_instance').select('id').where('plugin_id', '=', pluginId).execute();
  for (const { id } of own) await cancelTree(transaction, id);
  const { rows } = await withDescendants(sql`select id from plugin_instance where plugin_id = ${pluginId}`)
    .$castTo<{ id: number }>()
    .execute(transaction);
  const ids = sql`select unnest(${rows.map(({ id }) => id)}::bigint[])`;
  const folders = await instanceFolders(transaction, ids);
  await deleteInstanceRows(transaction, ids);
  await removeTreesLater(transaction, folders, 'with links to them');
  await enqueue(transaction, 'removeFromStorage', {});
  return rows.map(({ id }) => id);
}
