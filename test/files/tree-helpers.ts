/** Accounts, files and links in a database, for tests of the tree: rows only. */
import { sql } from 'kysely';
import type { Database } from '../../src/database/database.ts';
import { folderOf, nameOf } from '../../src/files/paths.ts';
import { createTopFolders, createUserHome, ensureFolder, insertFile, insertLinkFile } from '../../src/files/tree.ts';

export interface TestAccount {
  readonly id: number;
  readonly username: string;
}

async function insertAccount(database: Database, username: string): Promise<TestAccount> {
  const row = { username, email: `${username}@example.org`, password_hash: '' };
  const { id } = await database.insertInto('account').values(row).returning('id').executeTakeFirstOrThrow();
  return { id, username };
}

/** What the first start makes; gives the administrator. */
export async function makeTop(database: Database): Promise<TestAccount> {
  const administrator = await insertAccount(database, 'chris');
  const groups = await database
    .insertInto('account_group')
    .values([{ name: 'all_users' }, { name: 'pacs_users' }])
    .returning('id')
    .execute();
  const [allUsers, pacsUsers] = groups.map((group) => group.id);
  await database
    .transaction()
    .execute((transaction) =>
      createTopFolders(transaction, administrator.id, { allUsers: allUsers ?? 0, pacsUsers: pacsUsers ?? 0 }),
    );
  return administrator;
}

/** An account with its home, in the two groups. */
export async function makeAccount(database: Database, username: string): Promise<TestAccount> {
  const account = await insertAccount(database, username);
  await sql`insert into membership (group_id, account_id) select id, ${account.id} from account_group`.execute(
    database,
  );
  await database.transaction().execute((transaction) => createUserHome(transaction, account));
  return account;
}

export async function makeFile(
  database: Database,
  owner: TestAccount,
  path: string,
  sizeBytes: number,
): Promise<number> {
  return database.transaction().execute(async (transaction) => {
    const folder = await ensureFolder(transaction, folderOf(path), owner.id);
    const file = { folderId: folder.id, name: nameOf(path), ownerId: owner.id, sizeBytes, sha256: null, crc32: null };
    return insertFile(transaction, file);
  });
}

export async function makeLink(
  database: Database,
  owner: TestAccount,
  path: string,
  targetPath: string,
): Promise<void> {
  await database.transaction().execute(async (transaction) => {
    const folder = await ensureFolder(transaction, folderOf(path), owner.id);
    await insertLinkFile(transaction, { folderId: folder.id, name: nameOf(path), ownerId: owner.id, targetPath });
  });
}

/** Gives a folder a list of its own with one entry more or other than it had. */
export async function shareFolder(
  database: Database,
  path: string,
  account: TestAccount,
  level: 'r' | 'w',
  isPublic = false,
): Promise<void> {
  const { id } = await database
    .insertInto('acl')
    .values({ public: isPublic })
    .returning('id')
    .executeTakeFirstOrThrow();
  await database.insertInto('acl_entry').values({ acl_id: id, account_id: account.id, level }).execute();
  await database.updateTable('folder').set({ acl_id: id }).where('path', '=', path).execute();
}
