/** Making and changing feeds. */
import { sql } from 'kysely';
import { ownFeed } from '../access/feeds.ts';
import type { Transaction } from '../database/database.ts';
import { setPublic } from '../files/publishing.ts';
import { ensureFolder } from '../files/tree.ts';
import { invalid } from '../hypermedia/errors.ts';
import type { ActionCall } from '../hypermedia/routes.ts';

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

interface FeedChange {
  readonly name?: string;
  readonly public?: boolean;
}

/** Renames a feed, or makes it public or private. Members may send its present state back, but only owners may change that. */
export async function changeFeedBy(call: ActionCall, { name, public: wanted }: FeedChange): Promise<void> {
  const { transaction, caller, path } = call;
  const id = path.id ?? 0;
  const feed = await transaction
    .selectFrom('feed')
    .select(['name', 'public', 'folder_id', ownFeed('feed', caller).as('isOwn')])
    .where('id', '=', id)
    .forUpdate()
    .executeTakeFirstOrThrow();
  if (name !== undefined && name !== feed.name) {
    await transaction.updateTable('feed').set({ name }).where('id', '=', id).execute();
    await touchFeed(transaction, id);
  }
  if (wanted !== undefined && wanted !== feed.public) {
    if (!feed.isOwn) throw invalid('public', "Only the feed's owner may make it public or private.");
    await transaction.updateTable('feed').set({ public: wanted }).where('id', '=', id).execute();
    await touchFeed(transaction, id);
    if (feed.folder_id !== null) await setPublic(transaction, { table: 'folder', id: feed.folder_id }, wanted);
  }
}

interface NoteChange {
  readonly title?: string;
  readonly content?: string;
}

export async function changeNote({ transaction, path }: ActionCall, { title, content }: NoteChange): Promise<void> {
  const given = { ...(title !== undefined && { title }), ...(content !== undefined && { content }) };
  if (Object.keys(given).length === 0) return;
  const note = await transaction
    .updateTable('note')
    .set(given)
    .where('id', '=', path.id ?? 0)
    .returning('feed_id')
    .executeTakeFirstOrThrow();
  await touchFeed(transaction, note.feed_id);
}
