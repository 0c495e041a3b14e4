/** `hypercube user …`: accounts, for an operator with access to the machine. */
import { createAccount, setPassword, storeGreeting, usernameProblem } from '../accounts/rules.ts';
import type { Transaction } from '../database/database.ts';
import { email, readInput, text } from '../hypermedia/input.ts';
import type { Services } from '../services.ts';
import { CommandError } from './failure.ts';
import { askPassword } from './password.ts';
import { withServices } from './runtime.ts';

const PASSWORD = text({ min: 8, max: 100, required: true });
const NEW_ACCOUNT = {
  username: text({ min: 4, max: 32, required: true, check: usernameProblem }),
  email: email({ required: true }),
  password: PASSWORD,
};

export async function createUser(
  username: string,
  options: { readonly email: string; readonly administrator: boolean },
): Promise<void> {
  const password = await askPassword(`Password for ${username}`);
  const members = { username, email: options.email, password };
  const account = readInput(NEW_ACCOUNT, { members, isForm: false });
  await withServices(async (services) => {
    const id = await services.database
      .transaction()
      .execute((transaction) => createAccount(transaction, { ...account, isAdministrator: options.administrator }));
    await storeGreeting(services, { id, username: account.username });
  });
  process.stdout.write(`Made the account "${account.username}".\n`);
}

export async function changePassword(username: string): Promise<void> {
  const members = { password: await askPassword(`New password for ${username}`) };
  const { password } = readInput({ password: PASSWORD }, { members, isForm: false });
  await withServices((services) =>
    changeAccountOf(services, username, (transaction, id) => setPassword(transaction, id, password, null)),
  );
  process.stdout.write(`"${username}" has a new password; its sessions and tokens have ended.\n`);
}

export async function promote(username: string): Promise<void> {
  await withServices((services) =>
    changeAccountOf(services, username, async (transaction, id) => {
      await transaction
        .updateTable('account')
        .set({ is_administrator: true, is_staff: true, is_active: true })
        .where('id', '=', id)
        .execute();
    }),
  );
  process.stdout.write(`"${username}" is an administrator.\n`);
}

/** @throws {CommandError} when there is no such account */
async function changeAccountOf(
  { database }: Services,
  username: string,
  change: (transaction: Transaction, id: number) => Promise<void>,
): Promise<void> {
  await database.transaction().execute(async (transaction) => {
    const account = await transaction
      .selectFrom('account')
      .select('id')
      .where('username', '=', username)
      .forUpdate()
      .executeTakeFirst();
    if (!account) throw new CommandError(`There is no account with the user name "${username}".`);
    await change(transaction, account.id);
  });
}
