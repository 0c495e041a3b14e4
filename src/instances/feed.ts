/** The feed that an instance begins or belongs to. */
import { sql } from 'kysely';
import type { Transaction } from '../database/database.ts';
import { ensureFolder } from '../files/tree.ts';

export interface NewFeed {
  readonly name: string;
  readonly owner: { readonly id: number; readonly username: string };
}

export interface CreatedFeed {
  readonly id: number;
  readonly folderPath: string;
}

/** Makes a feed with its empty note and its folder. */
export async function createFeed(transaction: Transaction, { name, owner }: NewFeed): Promise<CreatedFeed> {
  const { id } = await transaction
    .insertInto('feed')
    .values({ name, owner_id: owner.id })
    .returning('id')
    .executeTakeFirstOrThrow();
  const folderPath = `home/${owner.username}/feeds/feed_${id}`;
  const folder = await ensureFolder(transaction, folderPath, owner.id);
  await transaction.updateTable('feed').set({ folder_id: folder.id }).where('id', '=', id).execute();
  await transaction.insertInto('note').values({ feed_id: id }).execute();
  return { id, folderPath };
}

/**
 * Says that something about the feed has changed. Until the transaction ends, nobody else changes or deletes it.
 * @returns false when it is being deleted
 */
export async function touchFeed(transaction: Transaction, feedId: number): Promise<boolean> {
  const { numUpdatedRows } = await transaction
    .updateTable('feed')
    .set({ modification_date: sql<string>`now()` })
    .where('id', '=', feedId)
    .where('deletion_status', '!=', 'pending')
    .executeTakeFirst();
  return numUpdatedRows > 0n;
}
