/** Making and changing accounts. */
import { randomBytes } from 'node:crypto';
import { sql } from 'kysely';
import type { Queries, Transaction } from '../database/database.ts';
import { createTopFolders, createUserHome, findFolder, WELCOME_TEXT } from '../files/tree.ts';
import { putFile } from '../files/uploads.ts';
import { InvalidFields, invalid } from '../hypermedia/errors.ts';
import { hashPassword } from '../passwords.ts';
import type { Services } from '../services.ts';
import { revokeTokens } from './tokens.ts';

/** Every account is in these; they cannot be deleted. */
export const DEFAULT_GROUPS = ['all_users', 'pacs_users'] as const;

/** Names that mean something else as the first component of a path. */
const RESERVED_NAMES = ['home', 'shared', 'public', 'services', 'pipelines'];

export interface NewAccount {
  readonly username: string;
  readonly email: string;
  readonly password: string;
  readonly isAdministrator?: boolean;
}

/** What is wrong with a user name, or null. It becomes the name of a folder. */
export function usernameProblem(username: string): string | null {
  if (/[/,]/.test(username)) return 'A user name may not contain "/" or ",".';
  if (/\p{Cc}/u.test(username)) return 'A user name may not contain control characters.';
  if (/^\.+$/.test(username)) return 'A user name may not consist of dots only.';
  if (RESERVED_NAMES.includes(username.toLowerCase()))
    return `"${username}" is the name of a system folder. Choose another one.`;
  return null;
}

/** Which of a name and an address somebody else has, whatever their case. */
export async function takenProblems(
  database: Queries,
  wanted: { readonly username?: string | undefined; readonly email?: string | undefined },
  exceptId = 0,
): Promise<Record<string, string[]>> {
  const { rows } = await sql<{ username: boolean; email: boolean }>`select
    exists (select from account where lower(username) = lower(${wanted.username ?? null}::text collate pg_c_utf8) and id <> ${exceptId}) as username,
    exists (select from account where lower(email) = lower(${wanted.email ?? null}::text collate pg_c_utf8) and id <> ${exceptId}) as email`.execute(
    database,
  );
  return {
    ...(rows[0]?.username && { username: ['This user name is already taken. Choose another one.'] }),
    ...(rows[0]?.email && { email: ['This e-mail address is already in use. Choose another one.'] }),
  };
}

/** The check before is for the reader; this one, under the lock, is for truth. */
async function requireUnique(
  transaction: Transaction,
  wanted: { username?: string; email?: string },
  exceptId = 0,
): Promise<void> {
  const problems = await takenProblems(transaction, wanted, exceptId);
  if (Object.keys(problems).length > 0) throw new InvalidFields(problems);
}

/** Sign-ups at the same moment wait for each other, so that names stay unique whatever their case. */
async function lockAccounts(transaction: Transaction): Promise<void> {
  await sql`select pg_advisory_xact_lock(hashtext('account names'))`.execute(transaction);
}

/** Makes an account with its memberships, folders and links, all or nothing. The greeting is stored by the caller. */
export async function createAccount(transaction: Transaction, account: NewAccount): Promise<number> {
  const password_hash = await hashPassword(account.password);
  await lockAccounts(transaction);
  await requireUnique(transaction, { username: account.username, email: account.email });
  // nobody comes into what somebody else has left, or prepared
  if (await findFolder(transaction, `home/${account.username}`))
    throw invalid('username', 'There is a home folder of this name already. Choose another name.');
  const { id } = await transaction
    .insertInto('account')
    .values({
      username: account.username,
      email: account.email,
      password_hash,
      is_staff: account.isAdministrator ?? false,
      is_administrator: account.isAdministrator ?? false,
    })
    .returning('id')
    .executeTakeFirstOrThrow();
  await transaction
    .insertInto('membership')
    .columns(['account_id', 'group_id'])
    .expression((query) =>
      query
        .selectFrom('account_group')
        .select([sql<number>`${id}::integer`.as('account_id'), 'id'])
        .where('name', 'in', DEFAULT_GROUPS),
    )
    .execute();
  await createUserHome(transaction, { id, username: account.username });
  return id;
}

/** The greeting in a new user's uploads. Without it the account is complete all the same. */
export async function storeGreeting(services: Services, account: { id: number; username: string }): Promise<void> {
  try {
    await putFile(services, {
      path: `home/${account.username}/uploads/welcome.txt`,
      ownerId: account.id,
      content: WELCOME_TEXT,
    });
  } catch (error) {
    services.log.error({ err: error, username: account.username }, 'the greeting of a new account could not be stored');
  }
}

export interface AccountChange {
  readonly email?: string;
  readonly password?: string;
}

/**
 * Changes an account. A new password ends the account's browser sessions and all its API tokens but the one that made the change.
 * @param sparedTokenId API token of the caller, null when somebody else or a password made the change
 */
export async function changeAccount(
  transaction: Transaction,
  accountId: number,
  change: AccountChange,
  sparedTokenId: number | null,
): Promise<void> {
  if (change.email !== undefined) {
    await lockAccounts(transaction);
    await requireUnique(transaction, { email: change.email }, accountId);
    await transaction.updateTable('account').set({ email: change.email }).where('id', '=', accountId).execute();
  }
  if (change.password !== undefined) await setPassword(transaction, accountId, change.password, sparedTokenId);
}

export async function setPassword(
  transaction: Transaction,
  accountId: number,
  password: string,
  sparedTokenId: number | null,
): Promise<void> {
  const password_hash = await hashPassword(password);
  await transaction.updateTable('account').set({ password_hash }).where('id', '=', accountId).execute();
  await transaction.deleteFrom('browser_session').where('account_id', '=', accountId).execute();
  await revokeTokens(transaction, accountId, sparedTokenId);
}

export interface Administrator {
  readonly created: boolean;
  readonly username: string;
  /** Made up here because no setting gave one; null when a setting did, or the account was there. */
  readonly password: string | null;
}

/** What the first start makes: groups, the instance, the first administrator, the top folders. Runs at every start. */
export async function ensureAdministrator(services: Services): Promise<Administrator> {
  const { config, database } = services;
  const generated = config.adminPassword === null ? randomBytes(15).toString('base64url') : null;
  return database.transaction().execute(async (transaction) => {
    await lockAccounts(transaction);
    const existing = await transaction
      .selectFrom('account')
      .select('username')
      .where('is_administrator', '=', true)
      .orderBy('id')
      .executeTakeFirst();
    if (existing) return { created: false, username: existing.username, password: null };
    await transaction
      .insertInto('chris_instance')
      .defaultValues()
      .onConflict((conflict) => conflict.doNothing())
      .execute();
    const groups = await transaction
      .insertInto('account_group')
      .values(DEFAULT_GROUPS.map((name) => ({ name })))
      .returning(['id', 'name'])
      .execute();
    const username = config.adminUsername;
    const password = config.adminPassword ?? generated ?? '';
    const { id } = await transaction
      .insertInto('account')
      .values({
        username,
        email: config.adminEmail,
        password_hash: await hashPassword(password),
        is_staff: true,
        is_administrator: true,
      })
      .returning('id')
      .executeTakeFirstOrThrow();
    const groupIds = Object.fromEntries(groups.map((group) => [group.name, group.id]));
    await createTopFolders(transaction, id, { allUsers: groupIds.all_users ?? 0, pacsUsers: groupIds.pacs_users ?? 0 });
    await createUserHome(transaction, { id, username });
    return { created: true, username, password: generated };
  });
}
