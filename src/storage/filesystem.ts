/**
 * Storage in a directory. A file of the tree lies at its path below the root; arriving bytes lie in `.incoming/` of the same
 * file system, so that a hard link gives them their place at once and never overwrites. The file system must know hard links.
 */
import { randomUUID } from 'node:crypto';
import { constants, realpathSync } from 'node:fs';
import { copyFile, type FileHandle, link, mkdir, open, opendir, readFile, realpath, rename } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import type { Readable } from 'node:stream';
import { AlreadyThere, BytesMissing, errorCode, UnsafePath } from './errors.ts';
import { makeFolders, type OpenFolder, openFolder } from './folders.ts';
import { INCOMING, splitStoragePath } from './paths.ts';
import { flushFile, receiveInto } from './receive.ts';
import type { ByteRange, IncomingFile, Storage, StoredFile } from './storage.ts';
import { lstatOrNull, removeEntry, unlinkIfThere, walkFiles } from './walk.ts';

const DAY_MILLISECONDS = 24 * 60 * 60 * 1000;

/** What a system call answers when two names cannot share their bytes: other file system, too many names, not known there. */
const CANNOT_LINK = ['EXDEV', 'EMLINK', 'EPERM', 'ENOTSUP', 'EOPNOTSUPP', 'ENOSYS'];

export class FilesystemStorage implements Storage {
  readonly #root: string;
  readonly #processId: number;
  /** Keys of incoming files. */
  readonly #retained = new Set<string>();

  private constructor(root: string, processId: number) {
    this.#root = root;
    this.#processId = processId;
  }

  /** @param processId id of this process in the table `server_process`: names the owner of incoming files */
  static async open(root: string, processId: number): Promise<FilesystemStorage> {
    await mkdir(join(root, INCOMING), { recursive: true });
    return new FilesystemStorage(await realpath(root), processId);
  }

  async receive(source: Readable, options: { maxBytes?: number } = {}): Promise<IncomingFile> {
    const key = this.#newKey();
    return { key, ...(await receiveInto(this.#incomingPath(key), source, options.maxBytes ?? Infinity)) };
  }

  readIncoming(incoming: IncomingFile): Promise<Buffer> {
    return readFile(this.#incomingPath(incoming.key));
  }

  async discard(incoming: Pick<IncomingFile, 'key'>): Promise<void> {
    if (!this.#retained.has(incoming.key)) await unlinkIfThere(this.#incomingPath(incoming.key));
  }

  retain(incoming: Pick<IncomingFile, 'key'>): void {
    this.#retained.add(incoming.key);
  }

  async place(incoming: IncomingFile, path: string): Promise<void> {
    await this.placeTentatively(incoming, path);
    await this.discard(incoming);
  }

  async placeTentatively(incoming: IncomingFile, path: string): Promise<void> {
    await this.#linkInto(this.#incomingPath(incoming.key), path);
  }

  async takeBack(incomingKey: string, path: string): Promise<void> {
    await using at = await this.#locate(path);
    if (at === null || !(await isSameFile(this.#incomingPath(incomingKey), at.entry))) return;
    await unlinkIfThere(at.entry);
    await at.folder.flush();
  }

  async read(path: string, range?: ByteRange): Promise<Readable> {
    await using at = await this.#locate(path);
    if (at === null) throw new BytesMissing(path);
    const handle = await openRegular(at.entry, path);
    return handle.createReadStream({ highWaterMark: 256 * 1024, ...range });
  }

  async size(path: string): Promise<number | null> {
    await using at = await this.#locate(path);
    const found = at === null ? null : await lstatOrNull(at.entry);
    return found?.isFile() ? found.size : null;
  }

  async exists(path: string): Promise<boolean> {
    await using at = await this.#locate(path);
    return at !== null && (await lstatOrNull(at.entry)) !== null;
  }

  async move(from: string, to: string): Promise<void> {
    splitStoragePath(to);
    if (`${to}/`.startsWith(`${from}/`)) throw new UnsafePath(to, 'something cannot be moved into itself');
    await using source = await this.#locate(from);
    const found = source === null ? null : await lstatOrNull(source.entry);
    if (source === null || found === null) return;
    if (found.isFile()) {
      await this.#linkInto(source.entry, to);
      await unlinkIfThere(source.entry);
    } else if (found.isDirectory()) {
      await this.#renameFolder(source.entry, to);
    } else {
      throw new UnsafePath(from, 'it is neither a file nor a folder');
    }
    await source.folder.flush();
  }

  async remove(path: string): Promise<void> {
    await using at = await this.#locate(path);
    if (at === null) return;
    await removeEntry(at.folder, at.name);
    await at.folder.flush();
  }

  async makeFolder(path: string): Promise<void> {
    await using _made = await makeFolders(this.#root, splitStoragePath(path));
  }

  async *list(path: string, special: (path: string) => void = () => {}): AsyncGenerator<StoredFile> {
    await using folder = await openFolder(this.#root, splitStoragePath(path));
    if (folder !== null) yield* walkFiles(folder, path, special);
  }

  async copy(from: string, to: string): Promise<void> {
    splitStoragePath(to);
    await using source = await this.#locate(from);
    if (source === null) throw new BytesMissing(from);
    // Opened first: what is copied is a regular file, not a link that was put in its place.
    await using _regular = await openRegular(source.entry, from);
    try {
      await this.#linkInto(source.entry, to);
    } catch (error) {
      if (error instanceof AlreadyThere) return;
      if (!CANNOT_LINK.includes(errorCode(error))) throw error;
      await this.#copyBytes(source.entry, to);
    }
  }

  localPath(path: string): string {
    const absolute = join(this.#root, ...splitStoragePath(path));
    let existing = absolute;
    for (;;) {
      try {
        if (realpathSync.native(existing) !== existing) throw new UnsafePath(path, 'it leads through a symbolic link');
        return absolute;
      } catch (error) {
        if (errorCode(error) !== 'ENOENT' && errorCode(error) !== 'ENOTDIR') throw error;
        existing = dirname(existing);
      }
    }
  }

  async removeLeftovers(deadProcessIds: readonly number[]): Promise<void> {
    const dead = new Set(deadProcessIds.map(String));
    for await (const entry of await opendir(join(this.#root, INCOMING))) {
      const path = this.#incomingPath(entry.name);
      const owner = entry.name.slice(0, entry.name.indexOf('-'));
      if (dead.has(owner) || (await isForgotten(path))) await unlinkIfThere(path);
    }
  }

  #newKey(): string {
    return `${this.#processId}-${randomUUID()}`;
  }

  #incomingPath(key: string): string {
    return join(this.#root, INCOMING, key);
  }

  /** The folder in which a path's last component lies, open; null when there is no such folder. */
  async #locate(path: string): Promise<Location | null> {
    const components = splitStoragePath(path);
    const folder = await openFolder(this.#root, components.slice(0, -1));
    return folder === null ? null : new Location(folder, components.at(-1) ?? '');
  }

  async #makeLocation(path: string): Promise<Location> {
    const components = splitStoragePath(path);
    return new Location(await makeFolders(this.#root, components.slice(0, -1)), components.at(-1) ?? '');
  }

  /** Gives bytes another name and flushes it. The same bytes there already count as done. */
  async #linkInto(existing: string | Buffer, path: string): Promise<void> {
    await using to = await this.#makeLocation(path);
    try {
      await link(existing, to.entry);
    } catch (error) {
      if (errorCode(error) !== 'EEXIST') throw error;
      if (!(await isSameFile(existing, to.entry))) throw new AlreadyThere(path);
    }
    await to.folder.flush();
  }

  async #renameFolder(existing: string | Buffer, path: string): Promise<void> {
    await using to = await this.#makeLocation(path);
    try {
      await rename(existing, to.entry);
    } catch (error) {
      if (['ENOTEMPTY', 'EEXIST', 'ENOTDIR'].includes(errorCode(error))) throw new AlreadyThere(path);
      throw error;
    }
    await to.folder.flush();
  }

  async #copyBytes(existing: string | Buffer, path: string): Promise<void> {
    const copied = this.#incomingPath(this.#newKey());
    try {
      await copyFile(existing, copied, constants.COPYFILE_EXCL | constants.COPYFILE_FICLONE);
      await flushFile(copied);
      await this.#linkInto(copied, path);
    } catch (error) {
      if (!(error instanceof AlreadyThere)) throw error;
    } finally {
      await unlinkIfThere(copied);
    }
  }
}

/** A name in an open folder. */
class Location implements AsyncDisposable {
  readonly folder: OpenFolder;
  readonly name: Buffer;
  /** For system calls. */
  readonly entry: Buffer;

  constructor(folder: OpenFolder, name: string) {
    this.folder = folder;
    this.name = Buffer.from(name);
    this.entry = folder.entry(name);
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.folder[Symbol.asyncDispose]();
  }
}

/** Opens a regular file without following a symbolic link or waiting for a pipe. */
async function openRegular(entry: Buffer, path: string): Promise<FileHandle> {
  let handle: FileHandle;
  try {
    handle = await open(entry, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
  } catch (error) {
    if (errorCode(error) === 'ENOENT') throw new BytesMissing(path);
    if (['ELOOP', 'ENXIO'].includes(errorCode(error))) throw new UnsafePath(path, 'it is not a regular file');
    throw error;
  }
  if ((await handle.stat()).isFile()) return handle;
  await handle.close();
  throw new UnsafePath(path, 'it is not a regular file');
}

async function isSameFile(one: string | Buffer, other: string | Buffer): Promise<boolean> {
  const [a, b] = await Promise.all([lstatOrNull(one), lstatOrNull(other)]);
  return a !== null && b !== null && a.ino === b.ino && a.dev === b.dev;
}

/** Whether nobody has written to an incoming file for a day: its owner is of another time or another database. */
async function isForgotten(path: string): Promise<boolean> {
  const found = await lstatOrNull(path);
  return found !== null && Date.now() - found.mtimeMs > DAY_MILLISECONDS;
}
