/** Making and deleting folders. */
import { sql } from 'kysely';
import { enqueue } from '../database/queue.ts';
import { invalid, invalidObject } from '../hypermedia/errors.ts';
import type { ActionCall, Call } from '../hypermedia/routes.ts';
import { BUSY, isFixedFolder, requireNoActiveOutput } from './moves.ts';
import { cleanPath, isFeedFolderPath } from './paths.ts';
import { findFolder } from './tree.ts';
import { ensureWritableFolder } from './uploads.ts';

/** Makes a folder and those above it. @throws {InvalidFields} under `path` */
export async function createFolder({ transaction, caller }: ActionCall, given: string): Promise<number> {
  const path = cleanPath(given, 'path');
  if (isFeedFolderPath(path))
    throw invalid('path', 'Names such as feed_17 are given to the folders of feeds by the system.');
  if (await findFolder(transaction, path)) throw invalid('path', `There is a folder at "${path}" already.`);
  const { id } = await ensureWritableFolder(transaction, caller, path, 'path');
  return id;
}

/** Marks a folder; a job then deletes it with all below. What hangs on it, a feed or an instance, goes by its own rules. */
export async function requestFolderDeletion({ transaction, caller, path }: ActionCall): Promise<void> {
  const id = path.id ?? 0;
  const folder = await transaction
    .selectFrom('folder')
    .select(['path', 'deletion_status'])
    .where('id', '=', id)
    .forUpdate()
    .executeTakeFirstOrThrow();
  if (isFixedFolder(folder.path) && caller.role !== 'administrator')
    throw invalidObject('A home folder and its folder "feeds" cannot be deleted.');
  if (!folder.path.includes('/')) throw invalidObject(`"${folder.path}" is a system folder and cannot be deleted.`);
  if (folder.deletion_status === 'pending') return;
  await requireNoActiveOutput(transaction, folder.path, () => invalidObject(BUSY));
  await transaction
    .updateTable('folder')
    .set({ deletion_status: 'pending', deletion_requested_at: sql<string>`now()`, deletion_error: '' })
    .where('id', '=', id)
    .execute();
  await enqueue(transaction, 'deleteFolder', { folderId: id });
}

/** The shortcuts that every home has stay there. @throws {InvalidFields} */
export async function requireMovableLink({ services, caller, path }: Call): Promise<void> {
  const link = await services.database
    .selectFrom('link_file as x')
    .innerJoin('folder as d', 'd.id', 'x.folder_id')
    .select(['d.path', 'x.name'])
    .where('x.id', '=', path.id ?? 0)
    .executeTakeFirst();
  const isFixed =
    link !== undefined &&
    /^home\/[^/]+$/.test(link.path) &&
    ['public.chrislink', 'shared.chrislink'].includes(link.name);
  if (isFixed && caller.role !== 'administrator')
    throw invalidObject(`"${link.path}/${link.name}" is needed by the system: it cannot be moved or deleted.`);
}
