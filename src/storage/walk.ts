/** Walking and removing folders of storage, a folder at a time, without following symbolic links. */
import { isUtf8 } from 'node:buffer';
import type { Stats } from 'node:fs';
import { lstat, opendir, rmdir, unlink } from 'node:fs/promises';
import { errorCode } from './errors.ts';
import type { OpenFolder } from './folders.ts';
import type { StoredFile } from './storage.ts';

/** null when nothing is there */
export async function lstatOrNull(path: string | Buffer): Promise<Stats | null> {
  try {
    return await lstat(path);
  } catch (error) {
    if (['ENOENT', 'ENOTDIR'].includes(errorCode(error))) return null;
    throw error;
  }
}

/** Nothing there is success. */
export async function unlinkIfThere(path: string | Buffer): Promise<void> {
  try {
    await unlink(path);
  } catch (error) {
    if (errorCode(error) !== 'ENOENT') throw error;
  }
}

/**
 * All regular files at any depth; everything else that is no folder, and names that are not UTF-8, go to `special`.
 * @param path of the folder, for what is yielded
 */
export async function* walkFiles(
  folder: OpenFolder,
  path: string,
  special: (path: string) => void,
): AsyncGenerator<StoredFile> {
  for await (const name of namesIn(folder)) {
    const entryPath = `${path}/${name}`;
    const found = await lstatOrNull(folder.entry(name));
    if (found === null) continue;
    await using child = found.isDirectory() && isUtf8(name) ? await folder.child(name) : null;
    if (child !== null) yield* walkFiles(child, entryPath, special);
    else if (found.isFile() && isUtf8(name)) yield { path: entryPath, sizeBytes: found.size };
    else special(entryPath);
  }
}

/** Removes what lies in a folder under a name, with everything below it. Nothing there is success. */
export async function removeEntry(folder: OpenFolder, name: Buffer): Promise<void> {
  const path = folder.entry(name);
  const found = await lstatOrNull(path);
  if (found === null) return;
  if (!found.isDirectory()) return unlinkIfThere(path);
  await using child = await folder.child(name);
  if (child !== null) for await (const inside of namesIn(child)) await removeEntry(child, inside);
  await rmdir(path);
}

/** The names in a folder as bytes, read as they are asked for. */
async function* namesIn(folder: OpenFolder): AsyncGenerator<Buffer> {
  // Latin-1 keeps every byte of a name as it is.
  for await (const entry of await opendir(folder.path, { encoding: 'latin1', bufferSize: 256 })) {
    yield Buffer.from(entry.name, 'latin1');
  }
}
