/**
 * The shortcuts that the system keeps: in `PUBLIC` to what everybody may read, in `SHARED` to what was shared with somebody.
 *
 * A shortcut belongs to the owner of its target. It is found by its target: the names of two, made of their paths, may be alike.
 */
import { sql } from 'kysely';
import type { Transaction } from '../database/database.ts';
import { linkFileName, withRandomSuffix } from './paths.ts';

/** How often a free name is looked for. */
const NAME_ATTEMPTS = 10;

export type Shelf = 'PUBLIC' | 'SHARED';

export interface Target {
  readonly path: string;
  readonly ownerId: number;
}

/** Who has an entry in an access list. */
export interface Grantee {
  readonly column: 'account_id' | 'group_id';
  readonly id: number;
}

interface Shortcut {
  readonly id: number;
  readonly acl_id: number | null;
}

async function findShortcut(transaction: Transaction, shelf: Shelf, path: string): Promise<Shortcut | null> {
  const { rows } = await sql<Shortcut>`
    select x.id, x.acl_id from link_file x join folder d on d.id = x.folder_id
    where d.path = ${shelf} and x.target_path = ${path} order by x.id limit 1`.execute(transaction);
  return rows[0] ?? null;
}

/** The shortcut to a target; when it has to be made and its name is taken by one to another target, under a name like it. */
export async function ensureShortcut(
  transaction: Transaction,
  shelf: Shelf,
  { path, ownerId }: Target,
): Promise<Shortcut> {
  const present = await findShortcut(transaction, shelf, path);
  if (present) return present;
  for (const name of namesOf(path)) {
    const { rows } = await sql<Shortcut>`
      insert into link_file (folder_id, name, owner_id, target_path)
      select id, ${name}, ${ownerId}, ${path} from folder where path = ${shelf}
      on conflict do nothing returning id, acl_id`.execute(transaction);
    if (rows[0]) return rows[0];
  }
  throw new Error(`no free name was found for the shortcut to "${path}"`);
}

/** The name that a shortcut to a path should have, then others like it. */
function* namesOf(path: string): Generator<string> {
  const name = linkFileName(path);
  yield name;
  for (let attempt = 0; attempt < NAME_ATTEMPTS; attempt += 1) yield withRandomSuffix(name);
}

/** Gives the shortcuts to a path, and to all below it, the names that follow from it: their targets have just been moved there. */
export async function renameShortcuts(transaction: Transaction, path: string): Promise<void> {
  const { rows } = await sql<{ id: number; target: string }>`
    select x.id, x.target_path as target from link_file x join folder d on d.id = x.folder_id
    where d.path in ('PUBLIC', 'SHARED')
      and (x.target_path = ${path} or (x.target_path > ${`${path}/`} and x.target_path < ${`${path}0`}))
    order by x.id`.execute(transaction);
  for (const { id, target } of rows) await renameShortcut(transaction, id, target);
}

async function renameShortcut(transaction: Transaction, id: number, target: string): Promise<void> {
  for (const name of namesOf(target)) {
    const { numAffectedRows } = await sql`update link_file x set name = ${name} where id = ${id} and not exists (
      select from link_file other where other.folder_id = x.folder_id and other.name = ${name} and other.id <> x.id)`.execute(
      transaction,
    );
    if (numAffectedRows === 1n) return;
  }
  throw new Error(`no free name was found for the shortcut to "${target}"`);
}

export async function removeShortcuts(transaction: Transaction, shelf: Shelf, path: string): Promise<void> {
  await sql`with gone as (
      delete from link_file where target_path = ${path} and folder_id = (select id from folder where path = ${shelf})
      returning acl_id
    ) delete from acl where id in (select acl_id from gone)`.execute(transaction);
}

/** Shows somebody the shortcut to what was shared. Lock the target first. */
export async function showInShared(transaction: Transaction, target: Target, grantee: Grantee): Promise<void> {
  const { id, acl_id } = await ensureShortcut(transaction, 'SHARED', target);
  const listId = acl_id ?? (await giveEmptyList(transaction, id));
  await sql`insert into acl_entry (acl_id, ${sql.ref(grantee.column)}, level) values (${listId}, ${grantee.id}, 'r')
    on conflict do nothing`.execute(transaction);
}

/** Who may see the folder `SHARED` does not for that reason see what is in it. */
async function giveEmptyList(transaction: Transaction, linkFileId: number): Promise<number> {
  const { id } = await transaction.insertInto('acl').defaultValues().returning('id').executeTakeFirstOrThrow();
  await transaction.updateTable('link_file').set({ acl_id: id }).where('id', '=', linkFileId).execute();
  return id;
}

/** Hides the shortcut from somebody; the last one takes it along. Lock the target first. */
export async function hideInShared(transaction: Transaction, path: string, grantee: Grantee): Promise<void> {
  const shortcut = await findShortcut(transaction, 'SHARED', path);
  if (!shortcut) return;
  await transaction
    .deleteFrom('acl_entry')
    .where('acl_id', '=', shortcut.acl_id)
    .where(grantee.column, '=', grantee.id)
    .where('level', '=', 'r')
    .execute();
  const left = await transaction
    .selectFrom('acl_entry')
    .select('id')
    .where('acl_id', '=', shortcut.acl_id)
    .limit(1)
    .executeTakeFirst();
  if (!left) await removeShortcuts(transaction, 'SHARED', path);
}
