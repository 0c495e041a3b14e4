/** Moving and renaming: bytes and rows together, access as it was. */
import { sql } from 'kysely';
import type { Caller } from '../access/caller.ts';
import type { Transaction } from '../database/database.ts';
import { invalid, invalidObject } from '../hypermedia/errors.ts';
import type { Call } from '../hypermedia/routes.ts';
import type { Services } from '../services.ts';
import { AlreadyThere } from '../storage/errors.ts';
import { changeStorage } from '../storage/intents.ts';
import { ownAcl, type TreeObject } from './access-lists.ts';
import { cleanPath, folderOf, isFeedFolderPath, LINK_ENDING, nameOf } from './paths.ts';
import { setPublic } from './publishing.ts';
import { removeShortcuts, renameShortcuts } from './shelves.ts';
import { ensureFolder, type FolderRow, findFolder, isNameTaken, moveFolderRows, NameTaken } from './tree.ts';
import { requireWritable } from './uploads.ts';

/** Where an object is and whose it is. */
interface Place {
  readonly path: string;
  readonly folderId: number | null;
  readonly ownerId: number;
}

async function placeOf(transaction: Transaction, { table, id }: TreeObject): Promise<Place> {
  const { rows } = await (table === 'folder'
    ? sql<Place>`select path, parent_id as "folderId", owner_id as "ownerId" from folder where id = ${id} for update`
    : sql<Place>`select d.path || '/' || x.name as path, x.folder_id as "folderId", x.owner_id as "ownerId"
        from ${sql.table(table)} x join folder d on d.id = x.folder_id where x.id = ${id} for update of x`
  ).execute(transaction);
  const [place] = rows;
  if (!place) throw new Error(`there is no ${table} ${id}`);
  return place;
}

/** @throws {InvalidFields} under the field's name, when the object may not go there */
async function requireTarget(
  transaction: Transaction,
  caller: Caller,
  from: Place,
  to: string,
  field: string,
): Promise<void> {
  const nearest = await requireWritable(transaction, caller, folderOf(to), field);
  const isOwner = from.ownerId === caller.id || caller.role === 'administrator';
  if (!isOwner && nearest.owner_id !== from.ownerId)
    throw invalid(field, "Only the owner may move it out of the owner's folders.");
  if (await findFolder(transaction, to)) throw invalid(field, `There is a folder at "${to}" already.`);
}

/** The folder at the target, made where it is missing, with the name free in it. @throws {InvalidFields} */
async function targetFolder(transaction: Transaction, from: Place, to: string, field: string): Promise<FolderRow> {
  try {
    const folder = await ensureFolder(transaction, folderOf(to), from.ownerId);
    if (await isNameTaken(transaction, folder.id, nameOf(to))) throw new NameTaken(to);
    return folder;
  } catch (error) {
    if (error instanceof NameTaken) throw invalid(field, error.message);
    throw error;
  }
}

/** Links to a moved object, and to all below it, lead to the new place; those in PUBLIC and SHARED get its name too. */
async function updateLinks(transaction: Transaction, from: string, to: string): Promise<void> {
  await sql`update link_file set target_path = ${to} || substr(target_path, length(${from}::text) + 1)
    where target_path = ${from} or (target_path > ${`${from}/`} and target_path < ${`${from}0`})`.execute(transaction);
  await renameShortcuts(transaction, to);
}

/** Moves a file or link file. The present path changes nothing. */
export async function moveFile(
  call: Call,
  object: TreeObject & { table: 'file' | 'link_file' },
  given: string,
  field: string,
): Promise<void> {
  const { services, caller } = call;
  const to = cleanPath(given, field);
  const isLink = to.endsWith(LINK_ENDING);
  if (isLink !== (object.table === 'link_file')) {
    throw invalid(
      field,
      isLink ? `Only link files may end in ${LINK_ENDING}.` : `The name of a link file must end in ${LINK_ENDING}.`,
    );
  }
  const from = await services.database.transaction().execute((transaction) => placeOf(transaction, object));
  if (from.path === to) return;
  await moveBytes(services, from.path, to, field, async (transaction) => {
    const now = await placeOf(transaction, object);
    requireUnmoved(now, from, field);
    await requireTarget(transaction, caller, now, to, field);
    await ownAcl(transaction, object);
    const folder = await targetFolder(transaction, now, to, field);
    await sql`update ${sql.table(object.table)} set folder_id = ${folder.id}, name = ${nameOf(to)} where id = ${object.id}`.execute(
      transaction,
    );
    await updateLinks(transaction, now.path, to);
  });
}

/** Moves what lies at a path together with rows. @throws {InvalidFields} when something lies at the target */
async function moveBytes(
  services: Services,
  from: string,
  to: string,
  field: string,
  work: (transaction: Transaction) => Promise<void>,
): Promise<void> {
  try {
    await changeStorage(services, [{ kind: 'move', from, to }], work);
  } catch (error) {
    if (error instanceof AlreadyThere) throw invalid(field, `There is something at "${to}" already.`);
    throw error;
  }
}

function requireUnmoved(now: Place, before: Place, field: string): void {
  if (now.path === before.path) return;
  throw invalid(field, 'It was moved by somebody else meanwhile. Look where it is and try again.');
}

/** Work in progress would write to the old place. @throws {InvalidFields} */
export async function requireNoActiveOutput(
  transaction: Transaction,
  path: string,
  refusal: () => Error,
): Promise<void> {
  const { rows } = await sql`select 1 from plugin_instance i join folder o on o.id = i.output_folder_id
    where i.active and (o.path = ${path} or (o.path > ${`${path}/`} and o.path < ${`${path}0`})) limit 1`.execute(
    transaction,
  );
  if (rows.length > 0) throw refusal();
}

export const BUSY =
  'A plugin instance that is still active writes its outputs there. Wait for its end, or cancel it first.';

/** `home/USER` and `home/USER/feeds` stay where they are. */
export function isFixedFolder(path: string): boolean {
  return /^home\/[^/]+(\/feeds)?$/.test(path);
}

/** Moves a folder with everything below. @throws {InvalidFields} */
export async function moveFolder(call: Call, id: number, given: string): Promise<void> {
  const { services, caller } = call;
  const to = cleanPath(given, 'path');
  const object = { table: 'folder', id } as const;
  const from = await services.database.transaction().execute(async (transaction) => {
    const place = await placeOf(transaction, object);
    await requireMovableFolder(transaction, caller, place, to);
    return place;
  });
  await moveBytes(services, from.path, to, 'path', async (transaction) => {
    const now = await placeOf(transaction, object);
    requireUnmoved(now, from, 'path');
    await requireMovableFolder(transaction, caller, now, to);
    await ownAcl(transaction, object);
    const parent = await targetFolder(transaction, now, to, 'path');
    await moveFolderRows(transaction, { id, path: now.path }, parent, nameOf(to));
    await updateLinks(transaction, now.path, to);
  });
}

/** @throws {InvalidFields} when the folder may not be moved, or not there */
async function requireMovableFolder(
  transaction: Transaction,
  caller: Caller,
  { path, ...place }: Place,
  to: string,
): Promise<void> {
  await requireTarget(transaction, caller, { path, ...place }, to, 'path');
  if (isFixedFolder(path) && caller.role !== 'administrator') {
    throw invalidObject('A home folder and its folder "feeds" cannot be moved.');
  }
  if (to.startsWith(`${path}/`)) throw invalid('path', 'A folder cannot be moved below itself.');
  if (isFeedFolderPath(to)) {
    throw invalid('path', 'Names such as feed_17 are given to the folders of feeds by the system.');
  }
  await requireNoActiveOutput(transaction, path, () => invalid('path', BUSY));
}

interface FileChange {
  readonly path?: string | undefined;
  readonly public?: boolean | undefined;
}

/** Changes place and publicity; the place first, so that a new link in PUBLIC points to it. @throws {InvalidFields} when nothing is asked for */
export async function changeObject(call: Call, object: TreeObject, change: FileChange, field: string): Promise<void> {
  if (change.path === undefined && change.public === undefined)
    throw invalidObject(`Give at least one of "${field}" and "public".`);
  const { database } = call.services;
  await requireOwnerForPublic(call, object, change.public);
  if (change.path !== undefined) {
    if (object.table === 'folder') await moveFolder(call, object.id, change.path);
    else await moveFile(call, object, change.path, field);
  }
  const isPublic = change.public;
  if (isPublic !== undefined)
    await database.transaction().execute((transaction) => setPublic(transaction, object, isPublic));
}

/** Writers may move; only owners and administrators may publish. */
async function requireOwnerForPublic(
  { services, caller }: Call,
  { table, id }: TreeObject,
  wanted: boolean | undefined,
): Promise<void> {
  if (wanted === undefined || caller.role === 'administrator') return;
  const { rows } = await sql<{ owner_id: number }>`select owner_id from ${sql.table(table)} where id = ${id}`.execute(
    services.database,
  );
  if (rows[0]?.owner_id !== caller.id) throw invalid('public', 'Only the owner may make it public or private.');
}

/** Bytes and row of a file, with the links that lead to it. */
export async function removeFile(
  { services }: Call,
  object: TreeObject & { table: 'file' | 'link_file' },
): Promise<void> {
  const { path } = await services.database.transaction().execute((transaction) => placeOf(transaction, object));
  await changeStorage(services, [{ kind: 'remove', path }], async (transaction) => {
    const now = await placeOf(transaction, object);
    if (now.path !== path)
      throw invalidObject('It was moved by somebody else meanwhile. Look where it is and try again.');
    const { rows } = await sql<{
      acl_id: number | null;
    }>`delete from ${sql.table(object.table)} where id = ${object.id} returning acl_id`.execute(transaction);
    const aclId = rows[0]?.acl_id ?? null;
    if (aclId !== null) await transaction.deleteFrom('acl').where('id', '=', aclId).execute();
    await removeShortcuts(transaction, 'PUBLIC', path);
    await removeShortcuts(transaction, 'SHARED', path);
  });
}
