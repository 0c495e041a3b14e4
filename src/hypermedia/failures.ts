/** Errors that nobody here threw on purpose — the framework's, the database's, the program's — as what the client is told. */
import type { FastifyRequest } from 'fastify';
import { NoResultError } from 'kysely';
import { BODY_TYPES } from './body.ts';
import {
  AddressTooLong,
  MalformedRequest,
  NotFound,
  Overtaken,
  RequestError,
  Unavailable,
  UnsupportedMediaType,
} from './errors.ts';

class UnexpectedFailure extends RequestError {
  readonly status = 500;
  override body(): object {
    return { error: this.message, detail: this.message };
  }
}

/** Failures of the connection to PostgreSQL, as `pg` names them. */
const DATABASE_AWAY = /^(ECONNREFUSED|ECONNRESET|ENOENT|EPIPE|57P0[123]|08\w{3}|53300)$/;

/** What PostgreSQL says when two requests were after the same rows: keys that came or went in between, deadlocks. */
const RACES = /^(23503|23505|40001|40P01)$/;

function codeOf(error: unknown): string {
  return error instanceof Error && 'code' in error ? String(error.code) : '';
}

/** What Fastify refuses before a route sees it. */
function frameworkRefusal(code: string, request: FastifyRequest): RequestError | null {
  switch (code) {
    case 'FST_ERR_CTP_INVALID_MEDIA_TYPE':
      return new UnsupportedMediaType(request.headers['content-type'] ?? '', BODY_TYPES);
    case 'FST_ERR_ROUTE_MISSING_CONTENT_TYPE':
      return new MalformedRequest(`A ${request.method} request needs a body and the header Content-Type.`);
    case 'FST_ERR_BAD_URL':
      return new MalformedRequest(
        'The address cannot be read: every % in it must begin an encoded byte of UTF-8 text, such as %20.',
      );
    case 'FST_ERR_MAX_PARAM_LENGTH':
      return new AddressTooLong();
    default:
      return null;
  }
}

export function asRequestError(error: unknown, request: FastifyRequest): RequestError {
  if (error instanceof RequestError) return error;
  const code = codeOf(error);
  const refused = frameworkRefusal(code, request);
  if (refused !== null) return refused;
  if (error instanceof NoResultError || RACES.test(code)) {
    request.log.warn({ err: error }, 'request met another one');
    return error instanceof NoResultError ? new NotFound('object any more') : new Overtaken();
  }
  request.log.error({ err: error }, 'request failed');
  if (DATABASE_AWAY.test(code))
    return new Unavailable('The database cannot be reached at the moment. Try again in a few seconds.');
  return new UnexpectedFailure(
    `The server failed to answer this request. Its log has the reason under request id ${request.id}.`,
  );
}
