/** Requests to delete instances and feeds: they are marked and stopped at once, and deleted in the background. */
import { sql } from 'kysely';
import type { Transaction } from '../database/database.ts';
import { enqueue } from '../jobs/queue.ts';
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
