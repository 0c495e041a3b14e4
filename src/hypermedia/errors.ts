/** Everything that a request can be refused with. Thrown where it is found; turned into an answer by `answer.ts` alone. */

/** Error texts by field, as the wire shows them; a nested object only where the reference nests. */
export type FieldErrors = Readonly<Record<string, readonly string[] | Readonly<Record<string, readonly string[]>>>>;

export abstract class RequestError extends Error {
  abstract readonly status: number;
  /** Headers that belong to this kind of refusal. */
  readonly headers: Readonly<Record<string, string>> = {};
  /** The JSON form of the answer's body. */
  body(): object {
    return { detail: this.message };
  }
}

/** 400: the request as a whole cannot be understood. */
export class MalformedRequest extends RequestError {
  readonly status = 400;
}

/** 400: fields that are wrong, all of them at once. */
export class InvalidFields extends RequestError {
  readonly status = 400;
  readonly fields: FieldErrors;
  constructor(fields: FieldErrors) {
    super(JSON.stringify(fields));
    this.fields = fields;
  }
  override body(): object {
    return this.fields;
  }
}

/** One wrong field. */
export function invalid(field: string, text: string): InvalidFields {
  return new InvalidFields({ [field]: [text] });
}

/** A rule that concerns several fields, or the state of the object. */
export function invalidObject(text: string): InvalidFields {
  return invalid('non_field_errors', text);
}

/** 401 */
export class NotAuthenticated extends RequestError {
  readonly status = 401;
  override readonly headers = { 'www-authenticate': 'Token' };
  constructor(
    message = 'Authentication credentials were not provided. Send a token, a user name and password, or a session cookie.',
  ) {
    super(message);
  }
}

/** 403 */
export class Forbidden extends RequestError {
  readonly status = 403;
  constructor(message = 'You do not have permission to perform this action.') {
    super(message);
  }
}

/** 404 */
export class NotFound extends RequestError {
  readonly status = 404;
  /** @param kind of object that was looked for, such as `feed` */
  constructor(kind: string) {
    super(`There is no such ${kind}.`);
  }
}

/** 405; the route adds `Allow`. */
export class MethodNotAllowed extends RequestError {
  readonly status = 405;
  constructor(method: string, offered: readonly string[]) {
    super(`Method ${method} is not offered here; ${offered.join(', ')} ${offered.length === 1 ? 'is' : 'are'}.`);
  }
}

/** 406 */
export class NotAcceptable extends RequestError {
  readonly status = 406;
  constructor(offered: readonly string[]) {
    super(`None of the media types in Accept can be produced here; ${offered.join(', ')} can.`);
  }
}

/** 409: the state of things is no longer what the request was checked against. */
export class Overtaken extends RequestError {
  readonly status = 409;
  constructor() {
    super(
      'Another request changed or removed the same thing at the same moment. Look at it again, then repeat this one.',
    );
  }
}

/** 413 */
export class TooLarge extends RequestError {
  readonly status = 413;
}

/** 414 */
export class AddressTooLong extends RequestError {
  readonly status = 414;
  constructor() {
    super('A part of the address is longer than any that exists here.');
  }
}

/** 415 */
export class UnsupportedEncoding extends RequestError {
  readonly status = 415;
  constructor(encoding: string) {
    super(`Content-Encoding "${encoding}" is not understood here. Send the body as it is, without that header.`);
  }
}

/** 415 */
export class UnsupportedMediaType extends RequestError {
  readonly status = 415;
  constructor(type: string, offered: readonly string[]) {
    super(`Request bodies of type "${type}" are not understood here; ${offered.join(', ')} are.`);
  }
}

/** 416 */
export class RangeNotSatisfiable extends RequestError {
  readonly status = 416;
  override readonly headers: Readonly<Record<string, string>>;
  constructor(sizeBytes: number) {
    super(`The requested range lies outside of the file's ${sizeBytes} bytes.`);
    this.headers = { 'content-range': `bytes */${sizeBytes}` };
  }
}

/** 429 */
export class TooManyRequests extends RequestError {
  readonly status = 429;
  override readonly headers: Readonly<Record<string, string>>;
  constructor(message: string, retryAfterSeconds: number) {
    super(message);
    this.headers = { 'retry-after': String(retryAfterSeconds) };
  }
}

/** 503: for a while only. */
export class Unavailable extends RequestError {
  readonly status = 503;
}

/** 507 */
export class InsufficientStorage extends RequestError {
  readonly status = 507;
}
