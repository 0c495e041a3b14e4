/**
 * The tree of folders, files and link files: rows only, no bytes.
 *
 * Terminology
 *   folder      a row with its whole path; the root has the empty path
 *   link file   a pointer: its content is the path that it points to
 *   access list (`acl`) who may read and change what lies below; without one, that of the nearest folder above holds
 */
import { sql } from 'kysely';
import type { Queries, Transaction } from '../database/database.ts';
import { joinPath } from './paths.ts';

/** 17 bytes, as clients have seen it. */
export const WELCOME_TEXT = 'Welcome to ChRIS!';

/** How often a folder is looked for that others move while it is being locked. */
const LOCK_ATTEMPTS = 100;

export interface FolderRow {
  readonly id: number;
  readonly path: string;
  readonly owner_id: number;
}

/** A name is taken by something that is no folder. */
export class NameTaken extends Error {
  override readonly name = 'NameTaken';
  readonly path: string;
  constructor(path: string) {
    super(`There is already a file at "${path}".`);
    this.path = path;
  }
}

/** A path and all above it, the root first. */
export function pathsDownTo(path: string): readonly string[] {
  const components = path === '' ? [] : path.split('/');
  return ['', ...components.map((_, index) => components.slice(0, index + 1).join('/'))];
}

export async function findFolder(database: Queries, path: string): Promise<FolderRow | null> {
  const row = await database
    .selectFrom('folder')
    .select(['id', 'path', 'owner_id'])
    .where('path', '=', path)
    .executeTakeFirst();
  return row ?? null;
}

/** The nearest folder at or above a path; the root is above all. */
export async function nearestFolder(database: Queries, path: string): Promise<FolderRow> {
  return database
    .selectFrom('folder')
    .select(['id', 'path', 'owner_id'])
    .where('path', 'in', pathsDownTo(path))
    .orderBy(sql`length(path)`, 'desc')
    .limit(1)
    .executeTakeFirstOrThrow();
}

/** Nothing else changes the names in a folder until the transaction ends. */
export async function lockFolder(transaction: Transaction, folderId: number): Promise<void> {
  await lockedPath(transaction, folderId);
}

/** null when there is no such folder any more */
async function lockedPath(transaction: Transaction, folderId: number): Promise<string | null> {
  const row = await transaction
    .selectFrom('folder')
    .select('path')
    .where('id', '=', folderId)
    .forNoKeyUpdate()
    .executeTakeFirst();
  return row?.path ?? null;
}

/** As `nearestFolder`, locked; looks again when the one that was found has been moved or deleted before it was locked. */
async function lockNearestFolder(transaction: Transaction, path: string): Promise<FolderRow> {
  for (let attempt = 0; attempt < LOCK_ATTEMPTS; attempt += 1) {
    const folder = await nearestFolder(transaction, path);
    if ((await lockedPath(transaction, folder.id)) === folder.path) return folder;
  }
  throw new Error(`the folders above "${path}" are being moved all the time`);
}

/** Whether a folder, file or link file of that name is in the folder. Lock the folder first. */
export async function isNameTaken(transaction: Transaction, folderId: number, name: string): Promise<boolean> {
  const { rows } = await sql<{ taken: boolean }>`select
    exists (select from folder where parent_id = ${folderId} and name = ${name})
    or exists (select from file where folder_id = ${folderId} and name = ${name})
    or exists (select from link_file where folder_id = ${folderId} and name = ${name}) as taken`.execute(transaction);
  return rows[0]?.taken ?? false;
}

/** Makes a folder, unless another transaction was faster. */
async function insertFolder(transaction: Transaction, parent: FolderRow, name: string, ownerId: number): Promise<void> {
  const path = joinPath(parent.path, name);
  await transaction
    .insertInto('folder')
    .values({ parent_id: parent.id, name, path, owner_id: ownerId })
    .onConflict((conflict) => conflict.doNothing())
    .execute();
}

/**
 * The folder at a path; it and the ones above it are made where they are missing. It stays at its path, and nobody else changes
 * the names in it, until the transaction ends.
 * @throws {NameTaken} when a file stands where a folder is needed
 */
export async function ensureFolder(transaction: Transaction, path: string, ownerId: number): Promise<FolderRow> {
  let folder = await lockNearestFolder(transaction, path);
  while (folder.path !== path) {
    const [name = ''] = path.slice(folder.path === '' ? 0 : folder.path.length + 1).split('/');
    if (await isNameTaken(transaction, folder.id, name)) {
      if ((await findFolder(transaction, joinPath(folder.path, name))) === null)
        throw new NameTaken(joinPath(folder.path, name));
    } else {
      await insertFolder(transaction, folder, name, ownerId);
    }
    folder = await lockNearestFolder(transaction, path);
  }
  return folder;
}

/**
 * Gives a folder another parent and name, and all folders below it the paths that follow. Files keep their rows.
 * @param folder as it is now @param parent locked, with the name free in it
 */
export async function moveFolderRows(
  transaction: Transaction,
  folder: Pick<FolderRow, 'id' | 'path'>,
  parent: FolderRow,
  name: string,
): Promise<void> {
  const from = folder.path;
  const to = joinPath(parent.path, name);
  if (`${to}/`.startsWith(`${from}/`)) throw new Error(`the folder "${from}" cannot be moved below itself`);
  await transaction
    .updateTable('folder')
    .set({ parent_id: parent.id, name, path: to })
    .where('id', '=', folder.id)
    .execute();
  // Folders that others were just making below are seen by the next turn only; below those that were moved nobody makes any.
  let moved = 1n;
  while (moved > 0n) {
    const { numAffectedRows } = await sql`update folder set path = ${to} || substr(path, length(${from}::text) + 1)
      where path > ${`${from}/`} and path < ${`${from}0`}`.execute(transaction);
    moved = numAffectedRows ?? 0n;
  }
}

export interface NewFile {
  readonly folderId: number;
  readonly name: string;
  readonly ownerId: number;
  readonly sizeBytes: number;
  readonly sha256: Buffer | null;
  readonly crc32: number | null;
}

export async function insertFile(transaction: Transaction, file: NewFile): Promise<number> {
  const { id } = await transaction
    .insertInto('file')
    .values({
      folder_id: file.folderId,
      name: file.name,
      owner_id: file.ownerId,
      size_bytes: file.sizeBytes,
      sha256: file.sha256,
      crc32: file.crc32,
    })
    .returning('id')
    .executeTakeFirstOrThrow();
  return id;
}

export interface NewLinkFile {
  readonly folderId: number;
  readonly name: string;
  readonly ownerId: number;
  readonly targetPath: string;
}

/** Makes a link file, unless one of that name is there. */
export async function insertLinkFile(transaction: Transaction, link: NewLinkFile): Promise<void> {
  await transaction
    .insertInto('link_file')
    .values({ folder_id: link.folderId, name: link.name, owner_id: link.ownerId, target_path: link.targetPath })
    .onConflict((conflict) => conflict.doNothing())
    .execute();
}

/** Gives a folder an access list of its own. */
export async function setFolderAcl(
  transaction: Transaction,
  folderId: number,
  isPublic: boolean,
  readerGroupId: number | null,
): Promise<void> {
  const { id } = await transaction
    .insertInto('acl')
    .values({ public: isPublic })
    .returning('id')
    .executeTakeFirstOrThrow();
  if (readerGroupId !== null)
    await transaction.insertInto('acl_entry').values({ acl_id: id, group_id: readerGroupId, level: 'r' }).execute();
  await transaction.updateTable('folder').set({ acl_id: id }).where('id', '=', folderId).execute();
}

/** What a new account gets: a home that nobody else sees, with the links that lead to what is shared and public. */
export async function createUserHome(
  transaction: Transaction,
  account: { readonly id: number; readonly username: string },
): Promise<void> {
  const home = await ensureFolder(transaction, `home/${account.username}`, account.id);
  await setFolderAcl(transaction, home.id, false, null);
  for (const name of ['uploads', 'feeds']) await ensureFolder(transaction, `${home.path}/${name}`, account.id);
  for (const [name, targetPath] of [
    ['public.chrislink', 'PUBLIC'],
    ['shared.chrislink', 'SHARED'],
  ] as const) {
    await insertLinkFile(transaction, { folderId: home.id, name, ownerId: account.id, targetPath });
  }
}

/** The folders that a system begins with (`accounts.md`, "What the first start makes"). */
export async function createTopFolders(
  transaction: Transaction,
  administratorId: number,
  groups: { readonly allUsers: number; readonly pacsUsers: number },
): Promise<void> {
  await transaction
    .insertInto('folder')
    .values({ parent_id: null, name: '', path: '', owner_id: administratorId })
    .execute();
  const folders: readonly [path: string, isPublic: boolean, readers: number | null][] = [
    ['', true, null],
    ['home', false, groups.allUsers],
    ['SHARED', false, groups.allUsers],
    ['PUBLIC', true, null],
    ['PIPELINES', true, null],
    ['SERVICES', false, groups.allUsers],
    ['SERVICES/PACS', false, groups.pacsUsers],
  ];
  for (const [path, isPublic, readers] of folders) {
    const { id } = await ensureFolder(transaction, path, administratorId);
    await setFolderAcl(transaction, id, isPublic, readers);
  }
}
