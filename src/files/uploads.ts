/** Bringing bytes into the tree. */
import { Readable } from 'node:stream';
import type { Caller } from '../access/caller.ts';
import { writeIntoFolder } from '../access/files.ts';
import type { Transaction } from '../database/database.ts';
import { invalid } from '../hypermedia/errors.ts';
import type { ReceivedFile } from '../hypermedia/input.ts';
import type { Call } from '../hypermedia/routes.ts';
import type { Services } from '../services.ts';
import { AlreadyThere } from '../storage/errors.ts';
import { changeStorage } from '../storage/intents.ts';
import type { IncomingFile } from '../storage/storage.ts';
import { cleanFileName, cleanPath, folderOf, joinPath, LINK_ENDING, nameOf, withRandomSuffix } from './paths.ts';
import { inheritFrom } from './publishing.ts';
import {
  ensureFolder,
  type FolderRow,
  findFolder,
  insertFile,
  isNameTaken,
  lockFolder,
  NameTaken,
  nearestFolder,
} from './tree.ts';

/** How often a free name is looked for before the upload is given up. */
const NAME_ATTEMPTS = 10;

/**
 * The nearest folder at or above a path, if the caller may put something there.
 * @throws {InvalidFields} under the field's name
 */
export async function requireWritable(
  transaction: Transaction,
  caller: Caller,
  path: string,
  field: string,
): Promise<FolderRow> {
  const nearest = await nearestFolder(transaction, path);
  const allowed = await transaction
    .selectFrom('folder')
    .select('id')
    .where('id', '=', nearest.id)
    .where(writeIntoFolder('folder', caller))
    .executeTakeFirst();
  if (!allowed) throw invalid(field, `You may not write into the folder "${nearest.path}".`);
  return nearest;
}

/** The folder of a new object, made where it is missing; what is new inherits from the folder that was there. */
export async function ensureWritableFolder(
  transaction: Transaction,
  caller: Caller,
  path: string,
  field: string,
): Promise<FolderRow> {
  const nearest = await requireWritable(transaction, caller, path, field);
  try {
    const folder = await ensureFolder(transaction, path, caller.id ?? 0);
    const topmost = nearest.path === path ? null : await findFolder(transaction, topmostNew(nearest.path, path));
    if (topmost) await inheritFrom(transaction, nearest, { table: 'folder', id: topmost.id }, caller.id ?? 0);
    return folder;
  } catch (error) {
    if (error instanceof NameTaken) throw invalid(field, error.message);
    throw error;
  }
}

/** The first folder on the way from an existing one to a path. */
function topmostNew(existing: string, path: string): string {
  const rest = existing === '' ? path : path.slice(existing.length + 1);
  return joinPath(existing, rest.split('/')[0] ?? '');
}

/** The stored path of an upload: folders as they are, the name cleaned. @throws {InvalidFields} */
function uploadPath(given: string): string {
  const path = cleanPath(given, 'upload_path');
  const name = cleanFileName(nameOf(path), 'upload_path');
  if (path.endsWith(LINK_ENDING) || name.endsWith(LINK_ENDING))
    throw invalid('upload_path', `Files that end in ${LINK_ENDING} are made by the system only.`);
  return joinPath(folderOf(path), name);
}

/** A name that is free in the folder: the wanted one, or that with a random ending. Keeps the folder locked. */
async function freeName(transaction: Transaction, folderId: number, wanted: string): Promise<string> {
  await lockFolder(transaction, folderId);
  let name = wanted;
  for (let attempt = 0; attempt < NAME_ATTEMPTS; attempt += 1) {
    if (!(await isNameTaken(transaction, folderId, name))) return name;
    name = withRandomSuffix(wanted);
  }
  throw invalid('upload_path', `No free name like "${wanted}" was found. Choose another one.`);
}

interface Upload {
  readonly upload_path: string;
  readonly fname: ReceivedFile;
}

/** Stores an upload under its path, or beside what is there already, and gives its id. */
export async function storeUpload(call: Call, { upload_path: given, fname }: Upload): Promise<number> {
  const wanted = uploadPath(given);
  const path = await call.services.database.transaction().execute(async (transaction) => {
    if (await findFolder(transaction, wanted))
      throw invalid('upload_path', `There is a folder at "${wanted}". Add the file's name to the path.`);
    const folder = await ensureWritableFolder(transaction, call.caller, folderOf(wanted), 'upload_path');
    return joinPath(folder.path, await freeName(transaction, folder.id, nameOf(wanted)));
  });
  const isTaken = (error: unknown): boolean => error instanceof NameTaken || error instanceof AlreadyThere;
  return placeUpload(call, fname.content, path).catch((error: unknown) => {
    // somebody else took the name between the two transactions
    if (isTaken(error))
      return placeUpload(call, fname.content, joinPath(folderOf(path), withRandomSuffix(nameOf(path))));
    throw error;
  });
}

/** Bytes and row together. @throws {NameTaken} {AlreadyThere} */
function placeUpload({ services, caller }: Call, content: IncomingFile, path: string): Promise<number> {
  const put = { kind: 'put', incoming: content, path, keepIfRefused: true } as const;
  return changeStorage(services, [put], async (transaction) => {
    const folder = await ensureWritableFolder(transaction, caller, folderOf(path), 'upload_path');
    await lockFolder(transaction, folder.id);
    if (await isNameTaken(transaction, folder.id, nameOf(path))) throw new NameTaken(path);
    const id = await insertFile(transaction, {
      folderId: folder.id,
      name: nameOf(path),
      ownerId: caller.id ?? 0,
      sizeBytes: content.sizeBytes,
      sha256: content.sha256,
      crc32: content.crc32,
    });
    await inheritFrom(transaction, folder, { table: 'file', id }, caller.id ?? 0);
    return id;
  });
}

export interface SmallFile {
  readonly path: string;
  readonly ownerId: number;
  readonly content: string;
}

/** Stores a small file that the server itself writes. */
export async function putFile(services: Services, { path, ownerId, content }: SmallFile): Promise<void> {
  const incoming = await services.storage.receive(Readable.from([Buffer.from(content)]));
  await changeStorage(services, [{ kind: 'put', incoming, path }], async (transaction) => {
    const { id } = await ensureFolder(transaction, folderOf(path), ownerId);
    const { sizeBytes, sha256, crc32 } = incoming;
    await insertFile(transaction, { folderId: id, name: nameOf(path), ownerId, sizeBytes, sha256, crc32 });
  });
}
