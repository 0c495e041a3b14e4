/** Changing feeds. */
import { ownFeed } from '../access/feeds.ts';
import { setPublic } from '../files/publishing.ts';
import { invalid } from '../hypermedia/errors.ts';
import type { ActionCall } from '../hypermedia/routes.ts';
import { touchFeed } from '../instances/feed.ts';

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
