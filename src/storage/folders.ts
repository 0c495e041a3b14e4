/**
 * Folders below the root of storage, opened so that no symbolic link is ever followed.
 *
 * A program that runs in its output folder can put symbolic links there, at any moment. So a folder is opened first, then
 * it is checked that what was opened lies where it should, and names in it are reached through the open handle
 * (`/proc/self/fd/<n>/<name>`): whatever happens to the path afterwards, the handle stays in the folder that was checked.
 * Where there is no /proc (macOS), the path is resolved and compared instead.
 */
import { constants } from 'node:fs';
import { type FileHandle, mkdir, open, readlink, realpath } from 'node:fs/promises';
import { join } from 'node:path';
import { errorCode, UnsafePath } from './errors.ts';

const HAS_PROC = process.platform === 'linux';

/** An open folder; closed by `await using`. */
export class OpenFolder implements AsyncDisposable {
  readonly #handle: FileHandle;
  /** A path for system calls that reaches this very folder. */
  readonly path: Buffer;

  constructor(handle: FileHandle, path: Buffer) {
    this.#handle = handle;
    this.path = HAS_PROC ? Buffer.from(`/proc/self/fd/${handle.fd}`) : path;
  }

  /**
   * A path for system calls that reaches a name in this very folder.
   * @param name text, or the bytes that the file system has, which need not be UTF-8
   */
  entry(name: string | Buffer): Buffer {
    return Buffer.concat([this.path, Buffer.from('/'), Buffer.from(name)]);
  }

  /** Opens a folder in this one; null when there is none of that name. */
  async child(name: Buffer): Promise<OpenFolder | null> {
    const path = this.entry(name);
    try {
      return new OpenFolder(await open(path, constants.O_RDONLY | constants.O_DIRECTORY | constants.O_NOFOLLOW), path);
    } catch (error) {
      if (['ENOENT', 'ENOTDIR', 'ELOOP'].includes(errorCode(error))) return null;
      throw error;
    }
  }

  /** Flushes the folder's entries to stable storage. */
  async flush(): Promise<void> {
    await this.#handle.sync();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#handle.close();
  }
}

/**
 * @param root real absolute path
 * @returns null when there is no such folder
 * @throws {UnsafePath} when a component is a symbolic link
 */
export async function openFolder(root: string, components: readonly string[]): Promise<OpenFolder | null> {
  const path = join(root, ...components);
  let handle: FileHandle;
  try {
    handle = await open(path, constants.O_RDONLY | constants.O_DIRECTORY);
  } catch (error) {
    if (['ENOENT', 'ENOTDIR'].includes(errorCode(error))) return null;
    if (errorCode(error) === 'ELOOP') throw throughLink(components);
    throw error;
  }
  let found: string;
  try {
    found = HAS_PROC ? await readlink(`/proc/self/fd/${handle.fd}`) : await realpath(path);
  } catch (error) {
    await handle.close();
    throw error;
  }
  if (found === path) return new OpenFolder(handle, Buffer.from(path));
  await handle.close();
  if (found === `${path} (deleted)`) return null;
  throw throughLink(components);
}

/** Opens a folder, making it and those above it where they are missing; what was made is flushed. */
export async function makeFolders(root: string, components: readonly string[]): Promise<OpenFolder> {
  const there = await openFolder(root, components);
  if (there !== null) return there;
  const name = components.at(-1);
  if (name === undefined) throw new UnsafePath('', 'the root of storage is missing');
  await using parent = await makeFolders(root, components.slice(0, -1));
  try {
    await mkdir(parent.entry(name));
    await parent.flush();
  } catch (error) {
    if (errorCode(error) !== 'EEXIST') throw error;
  }
  const made = await openFolder(root, components);
  if (made === null) throw new UnsafePath(components.join('/'), 'something that is not a folder is in its place');
  return made;
}

function throughLink(components: readonly string[]): UnsafePath {
  return new UnsafePath(components.join('/'), 'it leads through a symbolic link');
}
