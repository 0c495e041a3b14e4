import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import fc from 'fast-check';
import { sql } from 'kysely';
import type { CallerSql, Rule } from '../../src/access/caller.ts';
import * as rules from '../../src/access/files.ts';
import { makeAccount, makeFile, makeTop, shareFolder, type TestAccount } from '../files/tree-helpers.ts';
import { type TemporaryDatabase, temporaryDatabase } from '../helpers/postgres.ts';

type Asker = 'anonymous' | 'stranger' | 'reader' | 'writer' | 'owner' | 'administrator';
const ASKERS: readonly Asker[] = ['anonymous', 'stranger', 'reader', 'writer', 'owner', 'administrator'];

describe('access to the tree', () => {
  let temporary: TemporaryDatabase;
  let callers: Record<Asker, CallerSql>;
  let accounts: Record<'stranger' | 'reader' | 'writer' | 'owner', TestAccount>;
  const SHARED = 'home/owner/uploads/shared';
  const OPEN = 'home/owner/uploads/open';
  const PRIVATE = 'home/owner/uploads/private';

  before(async () => {
    temporary = await temporaryDatabase();
    const { database } = temporary;
    const administrator = await makeTop(database);
    const [stranger, reader, writer, owner] = [
      await makeAccount(database, 'stranger'),
      await makeAccount(database, 'reader'),
      await makeAccount(database, 'writer'),
      await makeAccount(database, 'owner'),
    ];
    accounts = { stranger, reader, writer, owner };
    const user = ({ id }: TestAccount) => ({ role: 'user', id }) as const;
    callers = {
      anonymous: { role: 'anonymous', id: null },
      stranger: user(stranger),
      reader: user(reader),
      writer: user(writer),
      owner: user(owner),
      administrator: { role: 'administrator', id: administrator.id },
    };
    for (const folder of [SHARED, OPEN, PRIVATE]) await makeFile(database, owner, `${folder}/below/file`, 1);
    // The reader by way of a group.
    await shareFolder(database, SHARED, writer, 'w');
    const { id } = await database
      .insertInto('account_group')
      .values({ name: 'readers' })
      .returning('id')
      .executeTakeFirstOrThrow();
    await database.insertInto('membership').values({ group_id: id, account_id: reader.id }).execute();
    await sql`insert into acl_entry (acl_id, group_id, level) select acl_id, ${id}, 'r' from folder where path = ${SHARED}`.execute(
      database,
    );
    await shareFolder(database, OPEN, owner, 'r', true);
  });
  after(() => temporary.close());

  const allowed = async (rule: Rule, table: 'folder' | 'file', path: string) => {
    const found: Asker[] = [];
    for (const asker of ASKERS) {
      const at =
        table === 'folder' ? sql`x.path = ${path}` : sql`x.folder_id = (select id from folder where path = ${path})`;
      const { rows } =
        await sql`select 1 from ${sql.table(table)} x where ${at} and ${rule('x', callers[asker])}`.execute(
          temporary.database,
        );
      if (rows.length > 0) found.push(asker);
    }
    return found.join(' ');
  };

  const cases: [string, Rule, Rule, string, string][] = [
    ['reading', rules.readFolder, rules.readFile, PRIVATE, 'owner administrator'],
    ['reading', rules.readFolder, rules.readFile, OPEN, 'anonymous stranger reader writer owner administrator'],
    ['reading', rules.readFolder, rules.readFile, SHARED, 'reader writer owner administrator'],
    ['changing', rules.writeFolder, rules.writeFile, PRIVATE, 'owner administrator'],
    ['changing', rules.writeFolder, rules.writeFile, OPEN, 'owner administrator'],
    ['changing', rules.writeFolder, rules.writeFile, SHARED, 'writer owner administrator'],
    ['publishing', rules.ownFolder, rules.ownFile, SHARED, 'owner administrator'],
    ['publishing', rules.ownFolder, rules.ownFile, OPEN, 'owner administrator'],
    ['seeing who has access', rules.knowFolderAccess, rules.knowFileAccess, OPEN, 'owner administrator'],
    [
      'seeing who has access',
      rules.knowFolderAccess,
      rules.knowFileAccess,
      SHARED,
      'reader writer owner administrator',
    ],
  ];
  for (const [what, ofFolder, ofFile, path, expected] of cases) {
    it(`allows ${what} ${path} and what lies in it: ${expected}`, async () => {
      assert.equal(await allowed(ofFolder, 'folder', path), expected);
      assert.equal(await allowed(ofFolder, 'folder', `${path}/below`), expected);
      assert.equal(await allowed(ofFile, 'file', `${path}/below`), expected);
    });
  }

  it('lets nobody put something into what is merely public or readable, administrators neither', async () => {
    assert.equal(await allowed(rules.writeIntoFolder, 'folder', OPEN), 'owner');
    assert.equal(await allowed(rules.writeIntoFolder, 'folder', PRIVATE), 'owner');
    assert.equal(await allowed(rules.writeIntoFolder, 'folder', `${SHARED}/below`), 'writer owner');
    assert.equal(await allowed(rules.writeIntoFolder, 'folder', ''), 'administrator');
  });

  it('shows the top folders as they were made', async () => {
    const known = 'stranger reader writer owner administrator';
    assert.equal(await allowed(rules.readFolder, 'folder', ''), `anonymous ${known}`);
    assert.equal(await allowed(rules.readFolder, 'folder', 'PIPELINES'), `anonymous ${known}`);
    for (const path of ['home', 'SHARED', 'SERVICES', 'SERVICES/PACS']) {
      assert.equal(await allowed(rules.readFolder, 'folder', path), known, path);
    }
    assert.equal(await allowed(rules.readFolder, 'folder', 'home/owner'), 'owner administrator');
  });

  it('lists in a folder exactly what can be opened, whatever lists there are', async () => {
    const { database } = temporary;
    const list = fc.option(
      fc.record({ public: fc.boolean(), reader: fc.constantFrom(null, 'r' as const, 'w' as const) }),
      { nil: null },
    );
    const file = fc.record({ list, owner: fc.constantFrom('owner' as const, 'writer' as const) });
    let round = 0;
    await fc.assert(
      fc.asyncProperty(list, list, fc.array(file, { maxLength: 4 }), async (above, own, files) => {
        round += 1;
        const path = `home/owner/uploads/random-${round}/folder`;
        const makeAcl = async (given: typeof above) => {
          if (given === null) return null;
          const { id } = await database
            .insertInto('acl')
            .values({ public: given.public })
            .returning('id')
            .executeTakeFirstOrThrow();
          if (given.reader !== null) {
            await database
              .insertInto('acl_entry')
              .values({ acl_id: id, account_id: accounts.reader.id, level: given.reader })
              .execute();
          }
          return id;
        };
        for (const [i, { list: given, owner }] of files.entries()) {
          const id = await makeFile(database, accounts.owner, `${path}/${i}`, 1);
          await database
            .updateTable('file')
            .set({ acl_id: await makeAcl(given), owner_id: accounts[owner].id })
            .where('id', '=', id)
            .execute();
        }
        await makeFile(database, accounts.owner, `${path}/plain`, 1);
        await database
          .updateTable('folder')
          .set({ acl_id: await makeAcl(above) })
          .where('path', '=', `home/owner/uploads/random-${round}`)
          .execute();
        await database
          .updateTable('folder')
          .set({ acl_id: await makeAcl(own) })
          .where('path', '=', path)
          .execute();
        const { id } = await database
          .selectFrom('folder')
          .select('id')
          .where('path', '=', path)
          .executeTakeFirstOrThrow();

        const effective = own ?? above;
        for (const asker of ASKERS) {
          const names = async (condition: ReturnType<Rule>) =>
            (
              await sql<{
                name: string;
              }>`select name from file x where folder_id = ${id} and ${condition} order by name`.execute(database)
            ).rows.map((row) => row.name);
          const listed = await names(rules.readInFolder('x', callers[asker], id));
          assert.deepEqual(listed, await names(rules.readFile('x', callers[asker])), asker);
          const isAllowed = (given: typeof above, owner: string) =>
            asker === 'administrator' ||
            asker === owner ||
            (given?.public ?? false) ||
            (asker === 'reader' && given !== null && given.reader !== null);
          const expected = files.flatMap(({ list: given, owner }, i) =>
            isAllowed(given ?? effective, owner) ? [String(i)] : [],
          );
          if (isAllowed(effective, 'owner')) expected.push('plain');
          assert.deepEqual(listed, expected, asker);
        }
      }),
      { numRuns: 25 },
    );
  });
});
