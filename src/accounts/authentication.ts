/** Checks credentials: download token, `Authorization` header, session cookie, in this order (`wire.md` section 11). */
import { createHmac } from 'node:crypto';
import type { FastifyRequest } from 'fastify';
import type { Pool } from 'pg';
import { ANONYMOUS, type Caller, type Credentials } from '../access/caller.ts';
import { type Authenticator, queryOf } from '../hypermedia/dispatch.ts';
import { NotAuthenticated } from '../hypermedia/errors.ts';
import { hashPassword, needsRehash, verifyPassword } from '../passwords.ts';
import type { Services } from '../services.ts';
import { provesOrigin, SESSION_COOKIE } from './sessions.ts';
import { LoginThrottle } from './throttle.ts';
import { consumeDownloadToken, hashToken, hasTokenForm } from './tokens.ts';

/** What the server needs to know of an account to let it in. */
export interface AccountRow {
  readonly id: number;
  readonly username: string;
  readonly is_staff: boolean;
  readonly is_administrator: boolean;
  readonly password_hash: string;
  readonly token_generation: number;
  readonly token_id: number | null;
  readonly feed_id: number | null;
}

const COLUMNS = 'a.id, a.username, a.is_staff, a.is_administrator, a.password_hash, a.token_generation';

// Prepared once per connection: these run with nearly every request. (The benchmarks run the first beside their bare handlers.)
export const BY_TOKEN = {
  name: 'account_by_token',
  text: `select ${COLUMNS}, t.id as token_id, t.feed_id from api_token t join account a on a.id = t.account_id
    where t.token_hash = $1 and a.is_active and (t.expires_at is null or t.expires_at > now())`,
};
const BY_SESSION = {
  name: 'account_by_session',
  text: `select ${COLUMNS}, null as token_id, null as feed_id from browser_session s join account a on a.id = s.account_id
    where s.id_hash = $1 and a.is_active and s.expires_at > now()`,
};
const BY_DOWNLOAD_TOKEN = {
  name: 'account_by_download_token',
  text: `select ${COLUMNS}, d.id as token_id, null as feed_id from download_token d join account a on a.id = d.account_id
    where d.token_hash = $1 and a.is_active and d.expires_at > now()`,
};
const BY_NAME = {
  name: 'account_by_name',
  text: `select ${COLUMNS}, null as token_id, null as feed_id from account a where a.username = $1 and a.is_active`,
};

async function find(pool: Pool, statement: { name: string; text: string }, key: unknown): Promise<AccountRow | null> {
  const { rows } = await pool.query<AccountRow>({ ...statement, values: [key] });
  return rows[0] ?? null;
}

function callerOf(account: AccountRow, credentials: Credentials): Caller {
  return {
    role: account.feed_id !== null ? 'job' : account.is_administrator ? 'administrator' : 'user',
    id: account.id,
    username: account.username,
    isStaff: account.feed_id === null && (account.is_staff || account.is_administrator),
    credentials,
    tokenId: account.token_id,
    feedId: account.feed_id,
  };
}

const REMEMBERED_SECONDS = 60;
const REMEMBERED_AT_MOST = 10_000;

/** Checks names and passwords; remembers briefly which were right, so that Basic authentication does not hash at each request. */
export class PasswordCheck {
  readonly #services: Services;
  readonly #throttle = new LoginThrottle();
  /** Keys hold the stored hash, so that a changed password is forgotten at once. */
  readonly #remembered = new Map<string, number>();

  constructor(services: Services) {
    this.#services = services;
  }

  /**
   * The account of that name if the password is right, else null.
   * @throws {TooManyRequests} after too many failures
   */
  async check(username: string, password: string, address: string, remember: boolean): Promise<AccountRow | null> {
    await this.#throttle.check(username, address);
    // no name holds a null character, and PostgreSQL takes none
    const account = username.includes('\0') ? null : await find(this.#services.pool, BY_NAME, username);
    if (remember && account && this.#remembers(account, password)) return account;
    if (!account || !(await this.#matches(account, password))) {
      if (!account) await hashPassword(password); // an unknown name takes as long as a wrong password
      await this.#throttle.countFailure(username, address);
      return null;
    }
    // of many guesses at the same moment none is told right once too many others have failed
    await this.#throttle.check(username, address);
    if (remember) this.#remember(account, password);
    return account;
  }

  /** White space around a password was cut off when it was set; both forms are right. */
  async #matches(account: AccountRow, password: string): Promise<boolean> {
    const { password_hash: stored } = account;
    const right =
      (await verifyPassword(password, stored)) ||
      (password !== password.trim() && (await verifyPassword(password.trim(), stored)));
    if (right && needsRehash(stored)) await this.#upgrade(account, password);
    return right;
  }

  /** Hashes of an older kind, such as Django's, become ours at the first log-in. */
  async #upgrade(account: AccountRow, password: string): Promise<void> {
    await this.#services.database
      .updateTable('account')
      .set({ password_hash: await hashPassword(password) })
      .where('id', '=', account.id)
      .where('password_hash', '=', account.password_hash)
      .execute();
  }

  #key(account: AccountRow, password: string): string {
    const key = this.#services.secrets.derive('remembered passwords');
    return createHmac('sha256', key).update(`${account.id}:${account.password_hash}:${password}`).digest('base64');
  }

  #remembers(account: AccountRow, password: string): boolean {
    return (this.#remembered.get(this.#key(account, password)) ?? 0) > Date.now();
  }

  #remember(account: AccountRow, password: string): void {
    if (this.#remembered.size >= REMEMBERED_AT_MOST) this.#remembered.clear();
    this.#remembered.set(this.#key(account, password), Date.now() + REMEMBERED_SECONDS * 1000);
  }
}

const BAD_TOKEN = 'The token is not valid. Ask for one with your user name and password at /api/v1/auth-token/.';
const USED_TOKEN = 'The download token is not valid: it was used before, or has expired.';
const BAD_PASSWORD = 'The user name or password is wrong.';

/** The name and password of a Basic header. @throws {NotAuthenticated} */
function readBasic(value: string): [string, string] {
  const text = /^[A-Za-z0-9+/]+={0,2}$/.test(value) ? Buffer.from(value, 'base64').toString('utf8') : '';
  const colon = text.indexOf(':');
  if (colon < 0) throw new NotAuthenticated('The Basic credentials are not the base64 form of "name:password".');
  return [text.slice(0, colon), text.slice(colon + 1)];
}

export function createAuthenticator(services: Services, passwords: PasswordCheck): Authenticator {
  const { pool, secrets } = services;

  const byToken = async (token: string): Promise<Caller> => {
    const account = hasTokenForm(token) ? await find(pool, BY_TOKEN, hashToken(token)) : null;
    if (!account) throw new NotAuthenticated(BAD_TOKEN);
    return callerOf(account, 'token');
  };

  const byPassword = async (value: string, address: string): Promise<Caller> => {
    const [username, password] = readBasic(value);
    const account = await passwords.check(username, password, address, true);
    if (!account) throw new NotAuthenticated(BAD_PASSWORD);
    return callerOf(account, 'basic');
  };

  /** null: this header is not of a kind that counts here. `Bearer` and a lone value count when they have a token's form. */
  const byHeader = async (header: string, address: string): Promise<Caller | null> => {
    const [scheme = '', ...rest] = header.trim().split(/\s+/);
    const value = rest.join(' ');
    if (/^token$/i.test(scheme)) return byToken(value);
    if (/^basic$/i.test(scheme)) return byPassword(value, address);
    if (/^bearer$/i.test(scheme) && hasTokenForm(value)) return byToken(value);
    return rest.length === 0 && hasTokenForm(scheme) ? byToken(scheme) : null;
  };

  const bySession = async (request: FastifyRequest): Promise<Caller> => {
    const session = request.cookies[SESSION_COOKIE];
    const account = session ? await find(pool, BY_SESSION, hashToken(session)) : null;
    return account ? callerOf(account, 'session') : ANONYMOUS;
  };

  const byDownloadToken = async (token: string): Promise<Caller> => {
    const account = await find(pool, BY_DOWNLOAD_TOKEN, hashToken(token));
    if (!account) throw new NotAuthenticated(USED_TOKEN);
    return callerOf(account, 'download token');
  };

  return {
    async authenticate(request, { downloadToken }) {
      const token =
        downloadToken && request.url.includes('download_token=') ? queryOf(request).get('download_token') : null;
      if (token !== null) return byDownloadToken(token);
      const { authorization } = request.headers;
      const caller = authorization === undefined ? null : await byHeader(authorization, request.ip);
      return caller ?? bySession(request);
    },
    async useUp(caller) {
      if (caller.credentials !== 'download token' || caller.tokenId === null) return;
      if (!(await consumeDownloadToken(services.database, caller.tokenId))) throw new NotAuthenticated(USED_TOKEN);
    },
    hasCsrfProof: (request, field) => provesOrigin(secrets, request, field),
  };
}
