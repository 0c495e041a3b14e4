/** Granting, changing and revoking permissions of folders, files and link files (`files.md` sections 2.2 and 6). */
import { type RawBuilder, sql } from 'kysely';
import type { Database, Transaction } from '../database/database.ts';
import { invalidObject, NotFound } from '../hypermedia/errors.ts';
import { type AccessChange, beginAccessChange, inheritsEntries, ownAcl, type TreeObject } from './access-lists.ts';
import { type Grantee, hideInShared, showInShared } from './shelves.ts';

/** Writes the same entry into all lists that a change reaches. */
async function writeEntries(
  transaction: Transaction,
  lists: RawBuilder<unknown>,
  grantee: Grantee,
  level: string,
): Promise<void> {
  const column = sql.ref(grantee.column);
  await sql`insert into acl_entry (acl_id, ${column}, level)
    select list.id, ${grantee.id}, ${level} from acl list where list.id in (${lists})
    on conflict (acl_id, ${column}) do update set level = excluded.level where acl_entry.level <> excluded.level`.execute(
    transaction,
  );
}

async function findEntry(transaction: Transaction, listId: number, grantee: Grantee): Promise<number | null> {
  const entry = await transaction
    .selectFrom('acl_entry')
    .select('id')
    .where('acl_id', '=', listId)
    .where(grantee.column, '=', grantee.id)
    .executeTakeFirst();
  return entry?.id ?? null;
}

/**
 * Lets somebody read (`r`) or also change (`w`) an object and all that is below it.
 * @returns the id of the entry in the object's own list
 * @throws {InvalidFields} when the object's list has an entry for them
 */
export async function grant(
  transaction: Transaction,
  object: TreeObject,
  grantee: Grantee,
  level: string,
): Promise<number> {
  const access = await beginAccessChange(transaction, object);
  if ((await findEntry(transaction, access.ownListId, grantee)) !== null)
    throw invalidObject('There is a permission for them already. Change that one.');
  await writeEntries(transaction, access.lists, grantee, level);
  await showInShared(transaction, access, grantee);
  const made = await findEntry(transaction, access.ownListId, grantee);
  if (made === null) throw new Error(`the permission of ${object.table} ${object.id} was not made`);
  return made;
}

interface Grant {
  readonly access: AccessChange;
  readonly grantee: Grantee;
  readonly level: string;
}

/** An entry of an object's own list, with all that a change of it reaches locked. @throws {NotFound} when it has just been revoked */
async function lockGrant(transaction: Transaction, table: TreeObject['table'], entryId: number): Promise<Grant> {
  const { rows } = await sql<{ id: number }>`select x.id from ${sql.table(table)} x
    join acl_entry entry on entry.acl_id = x.acl_id where entry.id = ${entryId}`.execute(transaction);
  const [object] = rows;
  if (!object) throw new NotFound('permission');
  const access = await beginAccessChange(transaction, { table, id: object.id });
  const entry = await transaction
    .selectFrom('acl_entry')
    .select(['account_id', 'group_id', 'level'])
    .where('id', '=', entryId)
    .executeTakeFirst();
  if (!entry) throw new NotFound('permission');
  const grantee: Grantee =
    entry.account_id === null
      ? { column: 'group_id', id: entry.group_id ?? 0 }
      : { column: 'account_id', id: entry.account_id };
  return { access, grantee, level: entry.level };
}

/** Gives a permission another level, on the object and all that is below it. @throws {NotFound} */
export async function changeGrant(
  transaction: Transaction,
  table: TreeObject['table'],
  entryId: number,
  level: string,
): Promise<void> {
  const { access, grantee } = await lockGrant(transaction, table, entryId);
  await writeEntries(transaction, access.lists, grantee, level);
}

/** Takes a permission away, also from what is below the object and has it with the same level. @throws {NotFound} */
export async function revoke(transaction: Transaction, table: TreeObject['table'], entryId: number): Promise<void> {
  const { access, grantee, level } = await lockGrant(transaction, table, entryId);
  await sql`delete from acl_entry where ${sql.ref(grantee.column)} = ${grantee.id} and level = ${level}
    and acl_id in (${access.lists})`.execute(transaction);
  await hideInShared(transaction, access.path, grantee);
}

/**
 * Gives an object that inherits permissions a list of its own, so that each of them has an id that speaks of this object alone:
 * whoever changes or revokes one by its id does not change the folder that it came from.
 */
export async function makePermissionsOwn(database: Database, object: TreeObject): Promise<void> {
  if (!(await inheritsEntries(database, object))) return;
  await database.transaction().execute((transaction) => ownAcl(transaction, object));
}
