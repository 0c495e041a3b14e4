/**
 * The access lists of folders, files and link files.
 *
 * Terminology
 *   own list        an object's own; an object without one has that of the nearest folder above (`access/files.ts`)
 *   entry           one user or group in a list, with `r` (reads) or `w` (changes too)
 *   reach           the lists that a change of one object's access changes: its own, and of a folder also all below
 *
 * Lists are locked from the top of the tree downwards, whoever changes or copies them, so that nobody waits for each other in a
 * circle, and no copy misses a change.
 */
import { type RawBuilder, sql } from 'kysely';
import type { Queries, Transaction } from '../database/database.ts';

export type TreeObject =
  | { readonly table: 'folder'; readonly id: number }
  | { readonly table: 'file'; readonly id: number }
  | { readonly table: 'link_file'; readonly id: number };

const EFFECTIVE = {
  folder: sql`folder_acl(x.id)`,
  file: sql`coalesce(x.acl_id, folder_acl(x.folder_id))`,
  link_file: sql`coalesce(x.acl_id, folder_acl(x.folder_id))`,
};

/** Whether an object has permissions that are those of a folder above. */
export async function inheritsEntries(database: Queries, { table, id }: TreeObject): Promise<boolean> {
  const { rows } = await sql<{ inherits: boolean }>`
    select x.acl_id is null and exists (select from acl_entry where acl_id = ${EFFECTIVE[table]}) as inherits
    from ${sql.table(table)} x where x.id = ${id}`.execute(database);
  return rows[0]?.inherits ?? false;
}

/** The list that holds for an object. @returns null for an object that is gone */
async function effectiveList(transaction: Transaction, { table, id }: TreeObject): Promise<number | null> {
  const { rows } = await sql<{ list: number }>`
    select ${EFFECTIVE[table]} as list from ${sql.table(table)} x where x.id = ${id}`.execute(transaction);
  return rows[0]?.list ?? null;
}

/** The list that holds for an object, locked: nobody changes it, or puts another one between it and the object. */
async function lockEffectiveList(transaction: Transaction, object: TreeObject): Promise<number> {
  for (let list = await effectiveList(transaction, object); list !== null; ) {
    await sql`select from acl where id = ${list} for no key update`.execute(transaction);
    const now = await effectiveList(transaction, object);
    if (now === list) return list;
    list = now;
  }
  throw new Error(`there is no ${object.table} ${object.id}`);
}

/**
 * Gives an object an access list of its own that says what held for it before, unless it has one. The object is locked.
 * @returns the list's id
 */
export async function ownAcl(transaction: Transaction, object: TreeObject): Promise<number> {
  const table = sql.table(object.table);
  const { rows } = await sql<{ own: number | null }>`
    select acl_id as own from ${table} where id = ${object.id} for update`.execute(transaction);
  const own = rows[0]?.own ?? null;
  if (own !== null) return own;
  const effective = await lockEffectiveList(transaction, object);
  const made = await sql<{ id: number }>`
    insert into acl (public) select public from acl where id = ${effective} returning id`.execute(transaction);
  const aclId = made.rows[0]?.id ?? 0;
  await sql`insert into acl_entry (acl_id, account_id, group_id, level)
    select ${aclId}, account_id, group_id, level from acl_entry where acl_id = ${effective} order by id`.execute(
    transaction,
  );
  await sql`update ${table} set acl_id = ${aclId} where id = ${object.id}`.execute(transaction);
  return aclId;
}

/** Lists of a folder and of everything below it: `acl_id`, and as `path` that of the folder they are at or in. */
function listsFrom(path: string): RawBuilder<unknown> {
  const range = path === '' ? sql`true` : sql`path = ${path} or (path > ${`${path}/`} and path < ${`${path}0`})`;
  return sql`(with inside as materialized (select id, acl_id, path from folder where ${range})
    select acl_id, path from inside where acl_id is not null
    union all select x.acl_id, inside.path from file x join inside on inside.id = x.folder_id where x.acl_id is not null
    union all select x.acl_id, inside.path from link_file x join inside on inside.id = x.folder_id where x.acl_id is not null)`;
}

interface Place {
  readonly path: string;
  readonly ownerId: number;
  readonly isPublic: boolean;
}

async function placeOf(transaction: Transaction, { table, id }: TreeObject): Promise<Place> {
  const from =
    table === 'folder'
      ? sql`select x.path, x.owner_id, ${EFFECTIVE.folder} as list from folder x where x.id = ${id}`
      : sql`select d.path || '/' || x.name as path, x.owner_id, ${EFFECTIVE[table]} as list
          from ${sql.table(table)} x join folder d on d.id = x.folder_id where x.id = ${id}`;
  const { rows } = await sql<Place>`
    select found.path, found.owner_id as "ownerId", acl.public as "isPublic"
    from (${from}) found join acl on acl.id = found.list`.execute(transaction);
  const [found] = rows;
  if (!found) throw new Error(`there is no ${table} ${id}`);
  return found;
}

/** A change of access that has begun: the object has a list of its own, and whatever the change reaches is locked. */
export interface AccessChange extends Place {
  readonly ownListId: number;
  /** SQL of the ids of all lists that the change reaches. */
  readonly lists: RawBuilder<unknown>;
}

export async function beginAccessChange(transaction: Transaction, object: TreeObject): Promise<AccessChange> {
  const ownListId = await ownAcl(transaction, object);
  const place = await placeOf(transaction, object);
  if (object.table !== 'folder') {
    await sql`select from acl where id = ${ownListId} for no key update`.execute(transaction);
    return { ...place, ownListId, lists: sql`select ${ownListId}::bigint` };
  }
  const reached = listsFrom(place.path);
  await sql`select from ${reached} reached join acl on acl.id = reached.acl_id
    order by reached.path for no key update of acl`.execute(transaction);
  return { ...place, ownListId, lists: sql`select reached.acl_id from ${reached} reached` };
}
