/** Browser sessions: cookies, and the proof that a writing request comes from our own page. */
import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto';
import type { CookieSerializeOptions } from '@fastify/cookie';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { sql } from 'kysely';
import type { Queries } from '../database/database.ts';
import type { Secrets } from '../secrets.ts';
import { hashToken } from './tokens.ts';

export const SESSION_COOKIE = 'sessionid';
export const CSRF_COOKIE = 'csrftoken';
const SESSION_SECONDS = 14 * 86400;
const CSRF_SECONDS = 365 * 86400;

function cookieOptions(request: FastifyRequest, maxAge: number, httpOnly: boolean): CookieSerializeOptions {
  return { path: '/', maxAge, httpOnly, sameSite: 'lax', secure: request.protocol === 'https' };
}

/** Begins a session and sets its cookie. */
export async function beginSession(
  database: Queries,
  accountId: number,
  request: FastifyRequest,
  reply: FastifyReply,
): Promise<string> {
  const session = randomBytes(24).toString('base64url');
  await database
    .insertInto('browser_session')
    .values({
      id_hash: hashToken(session),
      account_id: accountId,
      expires_at: sql<string>`now() + make_interval(secs => ${SESSION_SECONDS})`,
    })
    .execute();
  reply.setCookie(SESSION_COOKIE, session, cookieOptions(request, SESSION_SECONDS, true));
  return session;
}

export async function endSession(database: Queries, request: FastifyRequest, reply: FastifyReply): Promise<void> {
  const session = request.cookies[SESSION_COOKIE];
  if (session) await database.deleteFrom('browser_session').where('id_hash', '=', hashToken(session)).execute();
  reply.clearCookie(SESSION_COOKIE, { path: '/' });
}

/** A session's proof cannot be used with another session: it is signed together with the session's id. */
function signature(secrets: Secrets, nonce: string, session: string): string {
  return createHmac('sha256', secrets.derive('csrf')).update(`${nonce}:${session}`).digest('hex').slice(0, 32);
}

/** Sets the CSRF cookie for a session (empty: before log-in) and gives its value. */
export function setCsrfCookie(secrets: Secrets, session: string, request: FastifyRequest, reply: FastifyReply): string {
  const nonce = randomBytes(8).toString('hex');
  const token = nonce + signature(secrets, nonce, session);
  reply.setCookie(CSRF_COOKIE, token, cookieOptions(request, CSRF_SECONDS, false));
  return token;
}

function equal(one: string, other: string): boolean {
  const [left, right] = [Buffer.from(one), Buffer.from(other)];
  return left.length === right.length && timingSafeEqual(left, right);
}

/** Whether the proof in the header or form field is the cookie's, and the cookie's is this session's. */
export function provesOrigin(secrets: Secrets, request: FastifyRequest, field: unknown): boolean {
  const cookie = request.cookies[CSRF_COOKIE] ?? '';
  const header = request.headers['x-csrftoken'];
  const proof = typeof field === 'string' && field !== '' ? field : typeof header === 'string' ? header : '';
  const session = request.cookies[SESSION_COOKIE] ?? '';
  const signed = equal(cookie.slice(16), signature(secrets, cookie.slice(0, 16), session));
  return cookie.length === 48 && equal(proof, cookie) && signed;
}
