/** Taking bytes in: streamed to a new file, hashed on the way, flushed. */
import { createHash } from 'node:crypto';
import { createWriteStream } from 'node:fs';
import { open } from 'node:fs/promises';
import { type Readable, Transform } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { crc32 } from 'node:zlib';
import { TooLarge } from '../hypermedia/errors.ts';
import { errorCode, StorageFull } from './errors.ts';
import type { IncomingFile } from './storage.ts';
import { unlinkIfThere } from './walk.ts';

/** How many bytes may wait for the disk; they are written together. */
const WRITE_BUFFER_BYTES = 1024 * 1024;

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
  const meter = new Meter(maxBytes);
  try {
    // The pipeline ends when the file was flushed and closed.
    const file = createWriteStream(path, { flags: 'wx', flush: true, highWaterMark: WRITE_BUFFER_BYTES });
    await pipeline(source, meter, file);
  } catch (error) {
    await unlinkIfThere(path);
    if (['ENOSPC', 'EDQUOT'].includes(errorCode(error))) throw new StorageFull();
    throw error;
  }
  return { sizeBytes: meter.sizeBytes, sha256: meter.sha256.digest(), crc32: meter.crc32 };
}

/** Flushes a file's bytes to stable storage. */
export async function flushFile(path: string): Promise<void> {
  await using handle = await open(path, 'r+');
  await handle.datasync();
}

/** Passes bytes on and measures them. */
class Meter extends Transform {
  sizeBytes = 0;
  crc32 = 0;
  readonly sha256 = createHash('sha256');
  readonly #maxBytes: number;

  constructor(maxBytes: number) {
    super({ highWaterMark: WRITE_BUFFER_BYTES });
    this.#maxBytes = maxBytes;
  }

  override _transform(chunk: Buffer, _encoding: string, done: (error: Error | null, chunk?: Buffer) => void): void {
    this.sizeBytes += chunk.length;
    if (this.sizeBytes > this.#maxBytes) {
      done(new TooLarge(`The file is larger than ${this.#maxBytes} bytes, which is the most that is taken here.`));
      return;
    }
    this.sha256.update(chunk);
    this.crc32 = crc32(chunk, this.crc32);
    done(null, chunk);
  }
}
