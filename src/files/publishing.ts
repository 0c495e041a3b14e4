/** Making things public or private, and what new things inherit. */
import { sql } from 'kysely';
import type { Transaction } from '../database/database.ts';
import { linkFileName } from './paths.ts';
import { type FolderRow, findFolder } from './tree.ts';

export type TreeObject =
  | { readonly table: 'folder'; readonly id: number }
  | { readonly table: 'file'; readonly id: number }
  | { readonly table: 'link_file'; readonly id: number };

const EFFECTIVE = {
  folder: sql`folder_acl(x.id)`,
  file: sql`coalesce(x.acl_id, folder_acl(x.folder_id))`,
  link_file: sql`coalesce(x.acl_id, folder_acl(x.folder_id))`,
};

/**
 * Gives an object an access list of its own that says what held for it before, unless it has one.
 * @returns the list's id
 */
export async function ownAcl(transaction: Transaction, { table, id }: TreeObject): Promise<number> {
  const { rows } = await sql<{ own: number | null; effective: number }>`
    select x.acl_id as own, ${EFFECTIVE[table]} as effective from ${sql.table(table)} x where x.id = ${id} for update of x`.execute(
    transaction,
  );
  const [found] = rows;
  if (!found) throw new Error(`there is no ${table} ${id}`);
  if (found.own !== null) return found.own;
  const made = await sql<{ id: number }>`
    insert into acl (public) select public from acl where id = ${found.effective} returning id`.execute(transaction);
  const aclId = made.rows[0]?.id ?? 0;
  await sql`insert into acl_entry (acl_id, account_id, group_id, level)
    select ${aclId}, account_id, group_id, level from acl_entry where acl_id = ${found.effective}`.execute(transaction);
  await sql`update ${sql.table(table)} set acl_id = ${aclId} where id = ${id}`.execute(transaction);
  return aclId;
}

/** What a user newly makes in somebody else's folder can be changed by that folder's owner too. @param path of the topmost new folder */
export async function inheritFrom(
  transaction: Transaction,
  existing: FolderRow,
  path: string,
  creatorId: number,
): Promise<void> {
  if (existing.owner_id === creatorId) return;
  const topmost = await findFolder(transaction, path);
  if (!topmost) return;
  const aclId = await ownAcl(transaction, { table: 'folder', id: topmost.id });
  await transaction
    .insertInto('acl_entry')
    .values({ acl_id: aclId, account_id: existing.owner_id, level: 'w' })
    .onConflict((conflict) => conflict.columns(['acl_id', 'account_id']).doUpdateSet({ level: 'w' }))
    .execute();
}

/** Path and owner of an object. */
async function describe(
  transaction: Transaction,
  { table, id }: TreeObject,
): Promise<{ path: string; owner_id: number; acl_public: boolean }> {
  const from =
    table === 'folder'
      ? sql`select x.path, x.owner_id, ${EFFECTIVE.folder} as list from folder x where x.id = ${id}`
      : sql`select d.path || '/' || x.name as path, x.owner_id, ${EFFECTIVE[table]} as list
          from ${sql.table(table)} x join folder d on d.id = x.folder_id where x.id = ${id}`;
  const { rows } = await sql<{ path: string; owner_id: number; acl_public: boolean }>`
    select found.path, found.owner_id, acl.public as acl_public from (${from}) found join acl on acl.id = found.list`.execute(
    transaction,
  );
  const [found] = rows;
  if (!found) throw new Error(`there is no ${table} ${id}`);
  return found;
}

/** Lists of their own below a folder say the same as the folder from now on. */
async function publishBelow(transaction: Transaction, path: string, isPublic: boolean): Promise<void> {
  const folders = sql`select id from folder where path = ${path} or (path > ${`${path}/`} and path < ${`${path}0`})`;
  await sql`update acl set public = ${isPublic} where public is distinct from ${isPublic} and id in (
    select acl_id from folder where id in (${folders})
    union select acl_id from file where folder_id in (${folders})
    union select acl_id from link_file where folder_id in (${folders}))`.execute(transaction);
}

/** The shortcut in PUBLIC by which everybody finds it. */
async function linkInPublic(transaction: Transaction, path: string, ownerId: number): Promise<void> {
  const shelf = await findFolder(transaction, 'PUBLIC');
  const present = await transaction
    .selectFrom('link_file')
    .select('id')
    .where('folder_id', '=', shelf?.id ?? 0)
    .where('target_path', '=', path)
    .executeTakeFirst();
  if (!shelf || present) return;
  const name = linkFileName(path);
  const taken = await transaction
    .selectFrom('link_file')
    .select('id')
    .where('folder_id', '=', shelf.id)
    .where('name', '=', name)
    .executeTakeFirst();
  await transaction
    .insertInto('link_file')
    .values({
      folder_id: shelf.id,
      name: taken ? name.replace(/(?=\.chrislink$)/, `_${Date.now().toString(36)}`) : name,
      owner_id: ownerId,
      target_path: path,
    })
    .execute();
}

export async function unlinkFromPublic(transaction: Transaction, path: string): Promise<void> {
  await sql`delete from link_file where target_path = ${path}
    and folder_id = (select id from folder where path = 'PUBLIC')`.execute(transaction);
}

/** Makes an object, and everything below a folder, public or private. The value that it has already changes nothing. */
export async function setPublic(transaction: Transaction, object: TreeObject, isPublic: boolean): Promise<void> {
  const { path, owner_id, acl_public } = await describe(transaction, object);
  if (acl_public === isPublic) return;
  const aclId = await ownAcl(transaction, object);
  await transaction.updateTable('acl').set({ public: isPublic }).where('id', '=', aclId).execute();
  if (object.table === 'folder') await publishBelow(transaction, path, isPublic);
  if (isPublic) await linkInPublic(transaction, path, owner_id);
  else await unlinkFromPublic(transaction, path);
}
