/** Taking bytes in: streamed to a new file, hashed on the way, flushed. */
import { createHash } from 'node:crypto';
import { type FileHandle, open } from 'node:fs/promises';
import type { Readable } from 'node:stream';
import { crc32 } from 'node:zlib';
import { TooLarge } from '../hypermedia/errors.ts';
import { errorCode, StorageFull } from './errors.ts';
import type { IncomingFile } from './storage.ts';
import { unlinkIfThere } from './walk.ts';

/** How many bytes are written together. As many again are gathered and hashed meanwhile. */
const BATCH_BYTES = 256 * 1024;

/**
 * Streams bytes into a file that must not exist yet. After any error there is no file.
 * @param path absolute
 * @throws {TooLarge} past `maxBytes`, {StorageFull}
 */
export async function receiveInto(
  path: string,
  source: Readable,
  maxBytes: number,
): Promise<Omit<IncomingFile, 'key'>> {
  // A source that fails before it is read would end the process; the reading throws the same error.
  source.on('error', () => undefined);
  try {
    await using handle = await open(path, 'wx', 0o644);
    const measured = await writeMeasured(handle, source, maxBytes);
    await handle.datasync();
    return measured;
  } catch (error) {
    source.destroy();
    await unlinkIfThere(path);
    if (['ENOSPC', 'EDQUOT'].includes(errorCode(error))) throw new StorageFull();
    throw error;
  }
}

/** Flushes a file's bytes to stable storage. */
export async function flushFile(path: string): Promise<void> {
  await using handle = await open(path, 'r+');
  await handle.datasync();
}

async function writeMeasured(
  handle: FileHandle,
  source: AsyncIterable<Buffer>,
  maxBytes: number,
): Promise<Omit<IncomingFile, 'key'>> {
  const writer = new BatchWriter(handle);
  const sha256 = createHash('sha256');
  let sizeBytes = 0;
  let crc = 0;
  try {
    for await (const chunk of source) {
      sizeBytes += chunk.length;
      if (sizeBytes > maxBytes) {
        throw new TooLarge(`The file is larger than ${maxBytes} bytes, which is the most that is taken here.`);
      }
      sha256.update(chunk);
      crc = crc32(chunk, crc);
      await writer.add(chunk);
    }
  } finally {
    // Also after an error: the handle must not be closed under a write that is going on.
    await writer.end();
  }
  return { sizeBytes, sha256: sha256.digest(), crc32: crc };
}

/** Writes one batch while the next is gathered. */
class BatchWriter {
  readonly #handle: FileHandle;
  #batch: Buffer[] = [];
  #batchBytes = 0;
  /** The write that is going on; fulfilled with its error, so that nobody has to be waiting when it fails. */
  #writing: Promise<unknown> = Promise.resolve(null);

  constructor(handle: FileHandle) {
    this.#handle = handle;
  }

  async add(chunk: Buffer): Promise<void> {
    this.#batch.push(chunk);
    this.#batchBytes += chunk.length;
    if (this.#batchBytes >= BATCH_BYTES) await this.#startWriting();
  }

  async end(): Promise<void> {
    await this.#startWriting();
    await this.#finishWriting();
  }

  async #startWriting(): Promise<void> {
    await this.#finishWriting();
    const batch = this.#batch;
    this.#batch = [];
    this.#batchBytes = 0;
    if (batch.length > 0) {
      this.#writing = writeAll(this.#handle, batch).then(
        () => null,
        (error: unknown) => error,
      );
    }
  }

  async #finishWriting(): Promise<void> {
    const failure = await this.#writing;
    if (failure !== null) throw failure;
  }
}

/** A system call may write less than it was given. */
async function writeAll(handle: FileHandle, batch: readonly Buffer[]): Promise<void> {
  const { bytesWritten } = await handle.writev(batch);
  const expected = batch.reduce((sum, chunk) => sum + chunk.length, 0);
  if (bytesWritten === expected) return;
  let rest = Buffer.concat(batch).subarray(bytesWritten);
  while (rest.length > 0) {
    const written = await handle.write(rest);
    rest = rest.subarray(written.bytesWritten);
  }
}
