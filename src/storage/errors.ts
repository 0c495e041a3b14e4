/** What storage refuses or cannot do. Those that a request can cause are refusals of that request. */
import { InsufficientStorage, MalformedRequest, RequestError } from '../hypermedia/errors.ts';

/** The disk, or the quota on it, is full. */
export class StorageFull extends InsufficientStorage {
  constructor() {
    super('The storage of this server is full: nothing was stored. Free some space, or ask the operator for more.');
  }
}

/** A path that does not lie below the root of storage, or leads there through a symbolic link. */
export class UnsafePath extends MalformedRequest {
  constructor(path: string, problem: string) {
    super(`Storage path ${JSON.stringify(path)} is refused: ${problem}.`);
  }
}

/** 409: something lies where bytes were to be placed. */
export class AlreadyThere extends RequestError {
  readonly status = 409;
  constructor(path: string) {
    super(`Something is already stored at ${JSON.stringify(path)}; choose another name.`);
  }
}

/** 404: bytes that ought to be there are not. */
export class BytesMissing extends RequestError {
  readonly status = 404;
  constructor(path: string) {
    super(`Nothing is stored at ${JSON.stringify(path)}.`);
  }
}

/** The code of a failed system call, such as `ENOENT`; empty for other errors. */
export function errorCode(error: unknown): string {
  return error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : '';
}
