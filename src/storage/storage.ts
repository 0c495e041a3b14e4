/**
 * Where bytes live.
 *
 * Terminology
 *   storage path  relative, `/` between components, no empty, `.` or `..` component: the logical path of a file in the tree
 *   incoming      bytes that have arrived and are flushed, but have no place in the tree yet
 *   intent        a put, move or removal written down before it is done (see `intents.ts`), so that a crash leaves nothing half-done
 */
import type { Readable } from 'node:stream';

export interface ByteRange {
  /** First byte, from 0. */
  readonly start: number;
  /** Last byte, inclusive. */
  readonly end: number;
}

/** Bytes that have been received completely and flushed to stable storage. */
export interface IncomingFile {
  readonly key: string;
  readonly sizeBytes: number;
  /** 32 bytes. */
  readonly sha256: Buffer;
  /** CRC-32 as used by zip, unsigned. */
  readonly crc32: number;
}

export interface StoredFile {
  readonly path: string;
  readonly sizeBytes: number;
}

export interface Storage {
  /** Streams bytes into `.incoming/`. @throws {TooLarge} past `maxBytes`, {StorageFull} when the disk is. Nothing stays behind after an error. */
  receive(source: Readable, options?: { maxBytes?: number }): Promise<IncomingFile>;
  /** Content of an incoming file, for small ones. */
  readIncoming(incoming: IncomingFile): Promise<Buffer>;
  /** Forgets an incoming file; does nothing to bytes that have been placed. */
  discard(incoming: Pick<IncomingFile, 'key'>): Promise<void>;
  /** From now on this process does not forget the incoming file any more, whoever asks for it. */
  retain(incoming: Pick<IncomingFile, 'key'>): void;
  /** Gives an incoming file its place; never overwrites. @throws {AlreadyThere} */
  place(incoming: IncomingFile, path: string): Promise<void>;
  /** As `place`, but until the incoming file is discarded it can be taken back, also by another process. @throws {AlreadyThere} */
  placeTentatively(incoming: IncomingFile, path: string): Promise<void>;
  /**
   * Undoes `placeTentatively`, whether or not it was done. The incoming file stays, and so do other bytes at the path.
   * @param incomingKey key of an incoming file, perhaps of a dead process
   */
  takeBack(incomingKey: string, path: string): Promise<void>;
  /** Opens a file; the stream ends its handle when it is destroyed. @throws {BytesMissing} */
  read(path: string, range?: ByteRange): Promise<Readable>;
  /** null when there is no such file. */
  size(path: string): Promise<number | null>;
  /** Whether a file or folder lies at a path. */
  exists(path: string): Promise<boolean>;
  /** Moves a file or folder, never onto another. Missing source counts as done (the step may be repeated). @throws {AlreadyThere} when both exist */
  move(from: string, to: string): Promise<void>;
  /** Removes a file, or a folder with everything in it. Missing is success. */
  remove(path: string): Promise<void>;
  makeFolder(path: string): Promise<void>;
  /**
   * All regular files below a folder, at any depth and in no order; a missing folder is empty. Symbolic links and other
   * special files are not followed and not listed.
   * @param special is told the path of each of those
   */
  list(path: string, special?: (path: string) => void): AsyncIterable<StoredFile>;
  /** Copies without reading where the file system can (hard link, reflink). Existing target counts as done. @throws {BytesMissing} */
  copy(from: string, to: string): Promise<void>;
  /** Absolute path on this machine's file system, for engines that share it; null where bytes do not lie in files. @throws {UnsafePath} */
  localPath(path: string): string | null;
  /** Forgets what processes that have died left in `.incoming/`; to be called after their intents were settled. */
  removeLeftovers(deadProcessIds: readonly number[]): Promise<void>;
}
