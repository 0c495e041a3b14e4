/** Rows of output files and of the folders above them. Writing the same rows again changes nothing. */
import { sql } from 'kysely';
import type { Transaction } from '../database/database.ts';

export interface OutputFile {
  /** Path below the output folder. */
  readonly path: string;
  readonly sizeBytes: number;
}

export interface OutputLink {
  /** Name in the output folder, or path below it. */
  readonly path: string;
  readonly target: string;
}

export interface OutputPlace {
  /** Path of the output folder, which has a row. */
  readonly folderPath: string;
  readonly ownerId: number;
}

export async function writeFileRows(
  transaction: Transaction,
  place: OutputPlace,
  files: readonly OutputFile[],
): Promise<void> {
  const split = files.map(({ path }) => splitPath(place.folderPath, path));
  await writeFolderRows(transaction, place, new Set(split.map(({ folder }) => folder)));
  await sql`
    insert into file (folder_id, name, owner_id, size_bytes)
    select folder.id, given.name, ${place.ownerId}, given.size_bytes
    from unnest(${split.map(({ folder }) => folder)}::text[], ${split.map(({ name }) => name)}::text[],
      ${files.map(({ sizeBytes }) => sizeBytes)}::bigint[]) as given(folder, name, size_bytes)
      join folder on folder.path = given.folder
    on conflict (folder_id, name) do update
      set size_bytes = excluded.size_bytes, sha256 = null, crc32 = null, storage_key = null`.execute(transaction);
}

export async function writeLinkRows(
  transaction: Transaction,
  place: OutputPlace,
  links: readonly OutputLink[],
): Promise<void> {
  const split = links.map(({ path }) => splitPath(place.folderPath, path));
  await writeFolderRows(transaction, place, new Set(split.map(({ folder }) => folder)));
  await sql`
    insert into link_file (folder_id, name, owner_id, target_path)
    select folder.id, given.name, ${place.ownerId}, given.target
    from unnest(${split.map(({ folder }) => folder)}::text[], ${split.map(({ name }) => name)}::text[],
      ${links.map(({ target }) => target)}::text[]) as given(folder, name, target)
      join folder on folder.path = given.folder
    on conflict (folder_id, name) do update set target_path = excluded.target_path`.execute(transaction);
}

/** The folders, and those between them and the output folder; level by level, so that each finds its parent. */
async function writeFolderRows(
  transaction: Transaction,
  { folderPath, ownerId }: OutputPlace,
  folders: ReadonlySet<string>,
): Promise<void> {
  const missing = new Set<string>();
  for (const folder of folders) {
    for (let path = folder; path.length > folderPath.length; path = parentOf(path)) missing.add(path);
  }
  const byDepth = Map.groupBy(missing, (path) => path.split('/').length);
  for (const depth of [...byDepth.keys()].sort((a, b) => a - b)) {
    const paths = byDepth.get(depth) ?? [];
    await sql`
      insert into folder (parent_id, name, path, owner_id)
      select parent.id, given.name, given.path, ${ownerId}
      from unnest(${paths.map(parentOf)}::text[], ${paths.map(nameOf)}::text[], ${paths}::text[]) as given(parent, name, path)
        join folder parent on parent.path = given.parent
      on conflict do nothing`.execute(transaction);
  }
}

function splitPath(folderPath: string, path: string): { folder: string; name: string } {
  const whole = `${folderPath}/${path}`;
  return { folder: parentOf(whole), name: nameOf(whole) };
}

function parentOf(path: string): string {
  return path.slice(0, path.lastIndexOf('/'));
}

function nameOf(path: string): string {
  return path.slice(path.lastIndexOf('/') + 1);
}
