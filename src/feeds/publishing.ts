/** Making a feed's folder public, and private again. */
import { sql } from 'kysely';
import type { Transaction } from '../database/database.ts';
import { linkFileName } from '../files/paths.ts';
import { findFolder, insertLinkFile } from '../files/tree.ts';

interface Folder {
  readonly id: number;
  readonly path: string;
  readonly owner_id: number;
}

/** Gives the folder an access list of its own, a copy of the one that holds for it now, unless it has one. */
async function ensureOwnList(transaction: Transaction, folderId: number): Promise<void> {
  const { rows } = await sql<{ acl_id: number }>`
    with made as (
      insert into acl (public) select coalesce((select public from acl where id = folder_acl(${folderId})), false)
      from folder where id = ${folderId} and acl_id is null returning id
    ), copied as (
      insert into acl_entry (acl_id, account_id, group_id, level)
      select made.id, e.account_id, e.group_id, e.level from made join acl_entry e on e.acl_id = folder_acl(${folderId})
    )
    select id as acl_id from made`.execute(transaction);
  const [made] = rows;
  if (made) await transaction.updateTable('folder').set({ acl_id: made.acl_id }).where('id', '=', folderId).execute();
}

/** The folder's own list, and those of whatever lies below it. */
async function setListsPublic(transaction: Transaction, { path }: Folder, isPublic: boolean): Promise<void> {
  await sql`
    with inside as materialized (
      select id, acl_id from folder
      where path >= ${path} and path < ${path} || '0' and (path = ${path} or starts_with(path, ${path} || '/'))
    )
    update acl set public = ${isPublic} where public <> ${isPublic} and id in (
      select acl_id from inside where acl_id is not null
      union all select x.acl_id from file x join inside on x.folder_id = inside.id where x.acl_id is not null
      union all select l.acl_id from link_file l join inside on l.folder_id = inside.id where l.acl_id is not null
    )`.execute(transaction);
}

/**
 * Makes a folder and all that lies below it public or private: whatever had been set below is overruled. While it is public,
 * a link file in `PUBLIC` points to it.
 */
export async function publishFolder(transaction: Transaction, folder: Folder, isPublic: boolean): Promise<void> {
  await ensureOwnList(transaction, folder.id);
  await setListsPublic(transaction, folder, isPublic);
  const shelf = await findFolder(transaction, 'PUBLIC');
  if (shelf === null) throw new Error('the folder PUBLIC is missing');
  if (isPublic) {
    const link = {
      folderId: shelf.id,
      name: linkFileName(folder.path),
      ownerId: folder.owner_id,
      targetPath: folder.path,
    };
    await insertLinkFile(transaction, link);
  } else {
    await transaction
      .deleteFrom('link_file')
      .where('folder_id', '=', shelf.id)
      .where('target_path', '=', folder.path)
      .execute();
  }
}
