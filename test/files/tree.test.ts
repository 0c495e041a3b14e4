import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import type { Transaction } from '../../src/database/database.ts';
import {
  ensureFolder,
  findFolder,
  insertFile,
  moveFolderRows,
  NameTaken,
  nearestFolder,
  WELCOME_TEXT,
} from '../../src/files/tree.ts';
import { type TemporaryDatabase, temporaryDatabase } from '../helpers/postgres.ts';
import { makeAccount, makeFile, makeLink, makeTop, type TestAccount } from './tree-helpers.ts';

describe('the tree', () => {
  let temporary: TemporaryDatabase;
  let administrator: TestAccount;
  let alice: TestAccount;

  before(async () => {
    temporary = await temporaryDatabase();
    administrator = await makeTop(temporary.database);
    alice = await makeAccount(temporary.database, 'alice');
  });
  after(() => temporary.close());

  const inTransaction = <T>(work: (transaction: Transaction) => Promise<T>) =>
    temporary.database.transaction().execute(work);
  const ensure = (path: string) => inTransaction((transaction) => ensureFolder(transaction, path, alice.id));
  const pathsBelow = async (path: string) =>
    (
      await temporary.database
        .selectFrom('folder')
        .select('path')
        .where('path', 'like', `${path}%`)
        .orderBy('path')
        .execute()
    ).map((row) => row.path);
  /** Each folder's path is its parent's and its name. */
  const requireWhole = async () => {
    const rows = await temporary.database
      .selectFrom('folder as d')
      .innerJoin('folder as up', 'up.id', 'd.parent_id')
      .select(['d.path', 'd.name', 'up.path as above'])
      .execute();
    for (const row of rows) assert.equal(row.path, row.above === '' ? row.name : `${row.above}/${row.name}`);
  };
  const move = (from: string, parent: string, name: string) =>
    inTransaction(async (transaction) => {
      const folder = await findFolder(transaction, from);
      assert.ok(folder);
      await moveFolderRows(transaction, folder, await ensureFolder(transaction, parent, alice.id), name);
    });

  it('refuses a folder where a file or a link is', async () => {
    await makeFile(temporary.database, alice, 'home/alice/uploads/taken/file', 1);
    await makeLink(temporary.database, alice, 'home/alice/uploads/taken/l.chrislink', 'home/alice/uploads');
    await assert.rejects(ensure('home/alice/uploads/taken/file'), NameTaken);
    await assert.rejects(ensure('home/alice/uploads/taken/file/below/it'), NameTaken);
    await assert.rejects(ensure('home/alice/uploads/taken/l.chrislink/x'), NameTaken);
    assert.deepEqual(await pathsBelow('home/alice/uploads/taken'), ['home/alice/uploads/taken']);
  });

  it('refuses a move below itself', async () => {
    await ensure('home/alice/uploads/self/below');
    await assert.rejects(move('home/alice/uploads/self', 'home/alice/uploads/self/below', 'self'), /below itself/);
    assert.ok(await findFolder(temporary.database, 'home/alice/uploads/self/below'));
  });

  it('lets many make the same folders at once', async () => {
    const path = 'home/alice/uploads/made/by/many/at once';
    const made = await Promise.all(Array.from({ length: 8 }, () => ensure(path)));
    assert.equal(new Set(made.map((folder) => folder.id)).size, 1);
    assert.deepEqual(await pathsBelow('home/alice/uploads/made'), [
      'home/alice/uploads/made',
      'home/alice/uploads/made/by',
      'home/alice/uploads/made/by/many',
      path,
    ]);
    await requireWhole();
  });

  it('puts nothing into a folder that is being moved away', async () => {
    await ensure('home/alice/uploads/leaving');
    let upload: Promise<{ path: string }> | undefined;
    await inTransaction(async (transaction) => {
      const parent = await ensureFolder(transaction, 'home/alice/uploads', alice.id);
      const folder = await findFolder(transaction, 'home/alice/uploads/leaving');
      assert.ok(folder);
      await moveFolderRows(transaction, folder, parent, 'gone');
      upload = ensure('home/alice/uploads/leaving');
      // Long enough for the other transaction to find the folder and to wait for it.
      await pause(200);
    });
    const found = await upload;
    const gone = await findFolder(temporary.database, 'home/alice/uploads/gone');
    assert.ok(gone);
    assert.deepEqual(found, await findFolder(temporary.database, 'home/alice/uploads/leaving'));
    await requireWhole();
  });

  it('takes along what is made below while it is moved', async () => {
    await ensure('home/alice/uploads/crowd/a/b');
    const making = Array.from({ length: 12 }, (_, i) => ensure(`home/alice/uploads/crowd/a/b/${i}/deep/er`));
    await move('home/alice/uploads/crowd', 'home/alice/uploads', 'moved crowd');
    await Promise.all(making);
    await requireWhole();
  });

  it('moves folders with all below, and nothing whose name merely begins alike', async () => {
    for (const path of ['one/x/y', 'one.more', 'one more', 'one0']) await ensure(`home/alice/uploads/${path}`);
    await move('home/alice/uploads/one', 'home/alice/uploads/new/place', 'two');
    assert.deepEqual(await pathsBelow('home/alice/uploads/one'), [
      'home/alice/uploads/one more',
      'home/alice/uploads/one.more',
      'home/alice/uploads/one0',
    ]);
    assert.deepEqual(await pathsBelow('home/alice/uploads/new'), [
      'home/alice/uploads/new',
      'home/alice/uploads/new/place',
      'home/alice/uploads/new/place/two',
      'home/alice/uploads/new/place/two/x',
      'home/alice/uploads/new/place/two/x/y',
    ]);
    await requireWhole();
  });

  it('has one name once, whatever carries it', async () => {
    const folder = await ensure('home/alice/uploads/names');
    const file = { folderId: folder.id, name: 'a', ownerId: alice.id, sizeBytes: 1, sha256: null, crc32: null };
    await inTransaction((transaction) => insertFile(transaction, file));
    await assert.rejects(
      inTransaction((transaction) => insertFile(transaction, file)),
      { code: '23505' },
    );
  });

  it('finds the nearest folder', async () => {
    assert.equal(
      (await nearestFolder(temporary.database, 'home/alice/uploads/none/at/all')).path,
      'home/alice/uploads',
    );
    assert.equal((await nearestFolder(temporary.database, 'nothing')).path, '');
  });

  it('begins as the specification says', async () => {
    const rows = await temporary.database
      .selectFrom('folder as d')
      .innerJoin('acl', 'acl.id', 'd.acl_id')
      .leftJoin('acl_entry as e', 'e.acl_id', 'acl.id')
      .leftJoin('account_group as g', 'g.id', 'e.group_id')
      .select(['d.path', 'd.owner_id', 'acl.public', 'g.name as group', 'e.level'])
      .where('d.path', 'not like', 'home/%')
      .orderBy('d.path')
      .execute();
    assert.ok(rows.every((row) => row.owner_id === administrator.id));
    assert.deepEqual(
      rows.map((row) => [row.path, row.public, row.group, row.level]),
      [
        ['', true, null, null],
        ['PIPELINES', true, null, null],
        ['PUBLIC', true, null, null],
        ['SERVICES', false, 'all_users', 'r'],
        ['SERVICES/PACS', false, 'pacs_users', 'r'],
        ['SHARED', false, 'all_users', 'r'],
        ['home', false, 'all_users', 'r'],
      ],
    );
  });

  it('gives a user a home that nobody else sees', async () => {
    const home = await temporary.database
      .selectFrom('folder as d')
      .innerJoin('acl', 'acl.id', 'd.acl_id')
      .leftJoin('acl_entry as e', 'e.acl_id', 'acl.id')
      .select(['d.id', 'd.owner_id', 'acl.public', 'e.id as entry'])
      .where('d.path', '=', 'home/alice')
      .execute();
    assert.deepEqual(
      home.map((row) => [row.owner_id, row.public, row.entry]),
      [[alice.id, false, null]],
    );
    const links = await temporary.database
      .selectFrom('link_file')
      .select(['name', 'target_path'])
      .where('folder_id', '=', home[0]?.id ?? 0)
      .orderBy('name')
      .execute();
    assert.deepEqual(links, [
      { name: 'public.chrislink', target_path: 'PUBLIC' },
      { name: 'shared.chrislink', target_path: 'SHARED' },
    ]);
    for (const name of ['uploads', 'feeds']) {
      const folder = await findFolder(temporary.database, `home/alice/${name}`);
      assert.equal(folder?.owner_id, alice.id);
    }
    assert.equal(Buffer.byteLength(WELCOME_TEXT), 17);
  });
});
