/**
 * API tokens and download tokens. Only hashes are stored.
 *
 * An account's API token is the same at each log-in until it is revoked, without being stored: it is an HMAC, under the server's
 * key, of the account and a generation number. Revoking raises the generation.
 */
import { createHash, createHmac, randomBytes } from 'node:crypto';
import { sql } from 'kysely';
import type { Queries, Transaction } from '../database/database.ts';
import type { Secrets } from '../secrets.ts';

/** Forty hexadecimal digits, as clients expect. */
const TOKEN_FORM = /^[0-9a-f]{40}$/;

export const DOWNLOAD_TOKEN_SECONDS = 600;

export function hasTokenForm(text: string): boolean {
  return TOKEN_FORM.test(text);
}

export function hashToken(token: string): Buffer {
  return createHash('sha256').update(token).digest();
}

function tokenOf(secrets: Secrets, accountId: number, generation: number): string {
  return createHmac('sha256', secrets.derive('api token'))
    .update(`${accountId}:${generation}`)
    .digest('hex')
    .slice(0, 40);
}

/** The account's token; makes it known if this is the first log-in, and a new one if the last has ended. */
export async function issueToken(
  transaction: Transaction,
  secrets: Secrets,
  accountId: number,
  lifetimeDays: number | null,
): Promise<string> {
  const { token_generation: generation } = await transaction
    .selectFrom('account')
    .select('token_generation')
    .where('id', '=', accountId)
    .forUpdate()
    .executeTakeFirstOrThrow();
  const current = tokenOf(secrets, accountId, generation);
  const known = await transaction
    .selectFrom('api_token')
    .select(sql<boolean>`(expires_at is null or expires_at > now())`.as('valid'))
    .where('token_hash', '=', hashToken(current))
    .where('account_id', '=', accountId)
    .executeTakeFirst();
  if (known?.valid) return current;
  const next = known ? generation + 1 : generation;
  if (known) await replaceGeneration(transaction, accountId, next);
  const token = tokenOf(secrets, accountId, next);
  const expires_at = lifetimeDays === null ? null : sql<string>`now() + make_interval(days => ${lifetimeDays})`;
  await transaction
    .insertInto('api_token')
    .values({ account_id: accountId, token_hash: hashToken(token), kind: 'api', generation: next, expires_at })
    .execute();
  return token;
}

/** The expired token goes, and never comes back; those of running jobs have ends of their own. */
async function replaceGeneration(transaction: Transaction, accountId: number, next: number): Promise<void> {
  await transaction.deleteFrom('api_token').where('account_id', '=', accountId).where('kind', '=', 'api').execute();
  await transaction.updateTable('account').set({ token_generation: next }).where('id', '=', accountId).execute();
}

/** The account's token as it was issued before; null when it has to be issued. */
export async function currentToken(
  database: Queries,
  secrets: Secrets,
  accountId: number,
  generation: number,
): Promise<string | null> {
  const token = tokenOf(secrets, accountId, generation);
  const known = await database
    .selectFrom('api_token')
    .select('id')
    .where('token_hash', '=', hashToken(token))
    .where(sql<boolean>`(expires_at is null or expires_at > now())`)
    .executeTakeFirst();
  return known ? token : null;
}

/** Ends all API tokens of an account but the one given. */
export async function revokeTokens(
  transaction: Transaction,
  accountId: number,
  sparedId: number | null,
): Promise<void> {
  const revoked = await transaction
    .deleteFrom('api_token')
    .where('account_id', '=', accountId)
    .where('id', '!=', sparedId ?? 0)
    .returning('generation')
    .execute();
  const spared = sparedId !== null && !revoked.some(({ generation }) => generation !== null);
  if (spared) return;
  await transaction
    .updateTable('account')
    .set({ token_generation: sql`token_generation + 1` })
    .where('id', '=', accountId)
    .execute();
}

export interface DownloadToken {
  readonly id: number;
  readonly token: string;
}

export async function createDownloadToken(transaction: Transaction, accountId: number): Promise<DownloadToken> {
  const token = randomBytes(32).toString('base64url');
  const { id } = await transaction
    .insertInto('download_token')
    .values({
      account_id: accountId,
      token_hash: hashToken(token),
      expires_at: sql<string>`now() + make_interval(secs => ${DOWNLOAD_TOKEN_SECONDS})`,
    })
    .returning('id')
    .executeTakeFirstOrThrow();
  return { id, token };
}

/** Uses a download token up. False when somebody else was faster. */
export async function consumeDownloadToken(database: Queries, id: number): Promise<boolean> {
  const used = await database.deleteFrom('download_token').where('id', '=', id).executeTakeFirst();
  return used.numDeletedRows > 0n;
}

/** Forgets what has expired; runs from time to time. */
export async function sweepExpired(database: Queries): Promise<void> {
  await database.deleteFrom('download_token').where('expires_at', '<', sql<string>`now()`).execute();
  await database.deleteFrom('browser_session').where('expires_at', '<', sql<string>`now()`).execute();
  // an expired token of an account stays, so that its next log-in knows that this generation has ended
  await database
    .deleteFrom('api_token')
    .where('kind', '=', 'job')
    .where('expires_at', '<', sql<string>`now()`)
    .execute();
}
