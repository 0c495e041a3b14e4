/** Zip files of inputs and outputs, streamed between storage and a file on disk. */
import { once } from 'node:events';
import { createWriteStream } from 'node:fs';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { type Entry, openPromise, type ZipFile as ZipReader } from 'yauzl';
import { ZipFile } from 'yazl';
import { StorageFull } from '../storage/errors.ts';
import { componentProblem } from '../storage/paths.ts';
import type { Storage } from '../storage/storage.ts';
import type { InputFile } from './engine.ts';
import { CollectionFailed } from './errors.ts';

/** What a job without inputs gets, since services want a file. */
const PLACEHOLDER = { name: 'no-input.txt', content: 'This job has no input.\n' };

const FILE_TYPE = 0o170000;
const SYMBOLIC_LINK = 0o120000;

/** Writes a zip of the inputs, one after the other. @throws when an input cannot be read */
export async function writeZip(inputs: AsyncIterable<InputFile>, storage: Storage, path: string): Promise<void> {
  const zip = new ZipFile();
  const stopping = new AbortController();
  const writing = pipeline(zip.outputStream, createWriteStream(path, { mode: 0o600 }), { signal: stopping.signal });
  const failed = once(zip, 'error').then(([error]) => {
    throw error;
  });
  try {
    await Promise.race([Promise.all([addAll(zip, inputs, storage), writing]), failed]);
  } finally {
    stopping.abort();
  }
}

async function addAll(zip: ZipFile, inputs: AsyncIterable<InputFile>, storage: Storage): Promise<void> {
  let isEmpty = true;
  for await (const input of inputs) {
    isEmpty = false;
    const { storagePath, relativePath } = input;
    if (storagePath === null) {
      zip.addBuffer(Buffer.from(input.content ?? ''), relativePath);
    } else {
      // Opened only when its turn has come.
      zip.addReadStreamLazy(relativePath, { size: input.sizeBytes, compressionLevel: 1 }, (give) => {
        storage.read(storagePath).then(
          (stream) => give(null, stream),
          (error) => give(error, Readable.from([])),
        );
      });
    }
  }
  if (isEmpty) zip.addBuffer(Buffer.from(PLACEHOLDER.content), PLACEHOLDER.name);
  zip.end();
}

/**
 * Stores the files of a zip below a folder of storage; those that are there already, from a try that was cut short, are kept.
 * @returns their paths below the folder
 * @throws {CollectionFailed} CODE04 for a damaged zip or one with names that leave the folder
 */
export async function unpackZip(path: string, storage: Storage, folder: string): Promise<string[]> {
  let zip: ZipReader;
  try {
    zip = await openPromise(path, { lazyEntries: true, autoClose: false });
  } catch (error) {
    throw damaged(error);
  }
  try {
    const names = new Set<string>();
    for await (const entry of entriesOf(zip)) {
      if (entry.fileName.endsWith('/') || isLink(entry)) continue;
      const name = checkedName(entry.fileName);
      if (names.has(name)) throw new CollectionFailed(`the zip of the outputs has two files "${name}"`, 'CODE04');
      names.add(name);
      await storeEntry(zip, entry, storage, `${folder}/${name}`);
    }
    return [...names].sort();
  } finally {
    zip.close();
  }
}

async function* entriesOf(zip: ZipReader): AsyncGenerator<Entry> {
  for (let count = 0; count < zip.entryCount; count++) {
    yield await new Promise<Entry>((resolve, reject) => {
      const entry = (found: Entry) => settle(() => resolve(found));
      const error = (problem: Error) => settle(() => reject(damaged(problem)));
      const end = () => settle(() => reject(damaged('it has fewer files than it says')));
      const settle = (finish: () => void) => {
        zip.off('entry', entry).off('error', error).off('end', end);
        finish();
      };
      zip.once('entry', entry).once('error', error).once('end', end);
      zip.readEntry();
    });
  }
}

async function storeEntry(zip: ZipReader, entry: Entry, storage: Storage, path: string): Promise<void> {
  let content: Readable;
  try {
    content = await zip.openReadStreamPromise(entry);
  } catch (error) {
    throw damaged(error);
  }
  // Sizes are checked while reading, the checksum after it.
  let broken: Error | null = null;
  content.once('error', (error) => {
    broken = error;
  });
  const incoming = await storage.receive(content).catch((error) => {
    throw error instanceof StorageFull || broken === null ? error : damaged(broken);
  });
  if (incoming.crc32 !== entry.crc32) {
    await storage.discard(incoming);
    throw damaged(`the checksum of "${entry.fileName}" is wrong`);
  }
  if ((await storage.size(path)) === incoming.sizeBytes) {
    await storage.discard(incoming);
    return;
  }
  await storage.remove(path);
  await storage.place(incoming, path);
}

function isLink(entry: Entry): boolean {
  return ((entry.externalFileAttributes >>> 16) & FILE_TYPE) === SYMBOLIC_LINK;
}

function checkedName(name: string): string {
  for (const component of name.split('/')) {
    const problem = componentProblem(component);
    if (problem !== null) {
      throw new CollectionFailed(
        `the zip of the outputs has a file named ${JSON.stringify(name)}: ${problem}`,
        'CODE04',
      );
    }
  }
  return name;
}

function damaged(reason: unknown): CollectionFailed {
  const text = reason instanceof Error ? reason.message : String(reason);
  return new CollectionFailed(`the zip of the outputs is damaged: ${text}`, 'CODE04');
}
