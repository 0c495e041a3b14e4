/** The rows of a job's input: whatever lies at a path of the tree, and all files below it, read page by page. */
import { type RawBuilder, sql } from 'kysely';
import type { CallerSql } from '../access/caller.ts';
import { readFile, readFolder, readLinkFile } from '../access/files.ts';
import { SubmissionFailed } from '../compute/errors.ts';
import type { Queries } from '../database/database.ts';
import { folderOf, joinPath, nameOf } from './paths.ts';

const FOLDERS_A_PAGE = 200;
const FILES_A_PAGE = 1000;

export interface FolderEntry {
  readonly kind: 'folder';
  readonly path: string;
}

export interface FileEntry {
  readonly kind: 'file';
  readonly path: string;
  readonly storagePath: string;
  readonly sizeBytes: number;
}

export interface LinkEntry {
  readonly kind: 'link';
  readonly path: string;
  /** The path that it points to. */
  readonly target: string;
}

export type Entry = FolderEntry | FileEntry | LinkEntry;

/** Who reads, from where. */
export interface Reading {
  readonly database: Queries;
  readonly caller: CallerSql;
}

interface Named {
  readonly folder_id: number;
  readonly name: string;
  readonly readable: boolean;
}

interface FileRow extends Named {
  readonly size_bytes: number;
  readonly storage_key: string | null;
}

interface LinkRow extends Named {
  readonly target_path: string;
}

const FILE_COLUMNS = sql`x.folder_id, x.name, x.size_bytes, x.storage_key`;
const LINK_COLUMNS = sql`x.folder_id, x.name, x.target_path`;

/** The job cannot have this input. */
export function refused(message: string): SubmissionFailed {
  return new SubmissionFailed(message, false, 'CODE17');
}

/**
 * The folder, file or link file at a path, letter by letter; null when there is none.
 * @throws {SubmissionFailed} CODE17 when the caller may not read it
 */
export async function findEntry({ database, caller }: Reading, path: string): Promise<Entry | null> {
  const folder = folderOf(path);
  const at = sql`d.path = ${folder} and x.name = ${nameOf(path)}`;
  const { rows: folders } = await sql<{ readable: boolean }>`
    select ${readFolder('d', caller)} as readable from folder d where d.path = ${path}`.execute(database);
  if (folders[0]) return requireReadable<FolderEntry>(folders[0], { kind: 'folder', path });
  const { rows: files } = await sql<FileRow>`
    select ${FILE_COLUMNS}, ${readFile('x', caller)} as readable
    from folder d join file x on x.folder_id = d.id where ${at}`.execute(database);
  if (files[0]) return requireReadable(files[0], fileEntry(folder, files[0]));
  const { rows: links } = await sql<LinkRow>`
    select ${LINK_COLUMNS}, ${readLinkFile('x', caller)} as readable
    from folder d join link_file x on x.folder_id = d.id where ${at}`.execute(database);
  return links[0] ? requireReadable(links[0], linkEntry(folder, links[0])) : null;
}

/**
 * All files and link files at or below an entry.
 * @throws {SubmissionFailed} CODE17 when the caller may not read one of them, or a folder between
 */
export async function* walkEntry(reading: Reading, entry: Entry): AsyncGenerator<FileEntry | LinkEntry> {
  if (entry.kind !== 'folder') {
    yield entry;
    return;
  }
  for await (const paths of folderPages(reading, entry.path)) {
    const pathOf = (row: Named) => paths.get(row.folder_id) ?? entry.path;
    const folderIds = [...paths.keys()];
    for await (const row of rowsIn<FileRow>(reading, 'file', FILE_COLUMNS, folderIds)) {
      yield requireReadable(row, fileEntry(pathOf(row), row));
    }
    for await (const row of rowsIn<LinkRow>(reading, 'link_file', LINK_COLUMNS, folderIds)) {
      yield requireReadable(row, linkEntry(pathOf(row), row));
    }
  }
}

/** A folder and all below it: paths by id. */
async function* folderPages({ database, caller }: Reading, path: string): AsyncGenerator<ReadonlyMap<number, string>> {
  let last = '';
  for (;;) {
    const { rows } = await sql<{ id: number; path: string; readable: boolean }>`
      select d.id, d.path, ${readFolder('d', caller)} as readable from folder d
      where (d.path = ${path} or (d.path > ${`${path}/`} and d.path < ${`${path}0`})) and d.path > ${last}
      order by d.path limit ${FOLDERS_A_PAGE}`.execute(database);
    const end = rows.at(-1);
    if (end === undefined) return;
    for (const row of rows) requireReadable(row, row);
    yield new Map(rows.map((row) => [row.id, row.path]));
    last = end.path;
  }
}

/** The files or link files of some folders that may be read; only those with access lists of their own are asked about. */
async function* rowsIn<R extends Named>(
  { database, caller }: Reading,
  table: 'file' | 'link_file',
  columns: RawBuilder<unknown>,
  folderIds: readonly number[],
): AsyncGenerator<R> {
  let last: Pick<R, 'folder_id' | 'name'> = { folder_id: 0, name: '' };
  for (;;) {
    const { rows } = await sql<R>`
      select ${columns}, (x.acl_id is null or ${readFile('x', caller)}) as readable from ${sql.table(table)} x
      where x.folder_id = any(${folderIds}::bigint[]) and (x.folder_id, x.name) > (${last.folder_id}, ${last.name})
      order by x.folder_id, x.name limit ${FILES_A_PAGE}`.execute(database);
    yield* rows;
    const end = rows.at(-1);
    if (end === undefined || rows.length < FILES_A_PAGE) return;
    last = end;
  }
}

function fileEntry(folder: string, row: FileRow): FileEntry {
  const path = joinPath(folder, row.name);
  return { kind: 'file', path, storagePath: row.storage_key ?? path, sizeBytes: row.size_bytes };
}

function linkEntry(folder: string, row: LinkRow): LinkEntry {
  return { kind: 'link', path: joinPath(folder, row.name), target: row.target_path };
}

function requireReadable<E extends { readonly path: string }>(row: { readonly readable: boolean }, entry: E): E {
  if (row.readable) return entry;
  throw refused(`the input "${entry.path}" may not be read by the owner of the job`);
}
