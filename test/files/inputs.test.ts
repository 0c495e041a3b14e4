import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import type { InputFile } from '../../src/compute/engine.ts';
import { SubmissionFailed } from '../../src/compute/errors.ts';
import { stagedInputs, zippedInputs } from '../../src/files/inputs.ts';
import { folderOf, nameOf } from '../../src/files/paths.ts';
import { type TemporaryDatabase, temporaryDatabase } from '../helpers/postgres.ts';
import { makeAccount, makeFile, makeLink, makeTop, shareFolder, type TestAccount } from './tree-helpers.ts';

const OUTPUT = 'home/alice/feeds/feed_1/pl-x_2/data';

describe('the input of a job', () => {
  let temporary: TemporaryDatabase;
  let alice: TestAccount;
  let bob: TestAccount;

  before(async () => {
    temporary = await temporaryDatabase();
    const { database } = temporary;
    await makeTop(database);
    alice = await makeAccount(database, 'alice');
    bob = await makeAccount(database, 'bob');
    const up = 'home/alice/uploads';
    for (const name of ['in/a.txt', 'in/sub/b.txt', 'in/sub.more/c', 'inside/not', 'more/a.txt', 'more/d']) {
      await makeFile(database, alice, `${up}/${name}`, 3);
    }
    await makeFile(database, bob, 'home/bob/uploads/private/x', 1);
    await makeFile(database, bob, 'home/bob/uploads/shared/y', 1);
    await makeFile(database, bob, 'home/bob/uploads/shared/hidden/z', 1);
    await makeFile(database, alice, `${OUTPUT}/old`, 1);
  });
  after(() => temporary.close());

  const walkOf = (inputPaths: string[], account: TestAccount) => ({
    database: temporary.database,
    caller: { role: 'user', id: account.id } as const,
    inputPaths,
    outputPath: OUTPUT,
  });
  const gather = async (files: AsyncIterable<InputFile>) => {
    const found: Record<string, string> = {};
    for await (const { relativePath, storagePath, content } of files) {
      assert.equal(found[relativePath], undefined, `${relativePath} twice`);
      found[relativePath] = storagePath ?? `-> ${content}`;
    }
    return found;
  };
  const staged = (paths: string[], account = alice) => gather(stagedInputs(walkOf(paths, account)));
  const zipped = (paths: string[], account = alice) => gather(zippedInputs(walkOf(paths, account)));
  const links = async (folder: string, ...targets: string[]) => {
    for (const [i, target] of targets.entries()) {
      await makeLink(temporary.database, alice, `home/alice/uploads/${folder}/l${i}.chrislink`, target);
    }
    return `home/alice/uploads/${folder}`;
  };
  const refusal = async (work: Promise<unknown>) => {
    const error = await work.then(
      () => null,
      (thrown: unknown) => thrown,
    );
    assert.ok(error instanceof SubmissionFailed, String(error));
    assert.equal(error.code, 'CODE17');
    assert.equal(error.retry, false);
    return error.message;
  };

  describe('is refused', () => {
    const cases = [
      [OUTPUT, /output folder of the job or above/],
      ['home/alice/feeds/feed_1', /output folder of the job or above/],
      ['home', /no place for data/],
      ['PUBLIC', /no place for data/],
      ['SHARED/x', /no place for data/],
      ['home/bob', /holds too much/],
      ['home/bob/feeds', /holds too much/],
      ['home/bob/uploads/private', /may not be read/],
      ['home/bob/uploads/private/x', /may not be read/],
      ['../../etc', /no place for data/],
    ] as const;
    for (const [index, [target, expected]] of cases.entries()) {
      it(`when a link leads to ${target}`, async () => {
        const path = await links(`bad-${index}`, target);
        assert.match(await refusal(staged([path])), expected);
        assert.match(await refusal(zipped([path])), expected);
      });
    }

    it('when links lead there over others', async () => {
      const second = await links('second', 'home/bob/uploads/private');
      const first = await links('first', second);
      assert.match(await refusal(staged([first])), /home\/bob\/uploads\/private/);
      assert.match(await refusal(zipped([first])), /home\/bob\/uploads\/private/);
    });

    it('when a path itself may not be read, or is the output', async () => {
      assert.match(await refusal(staged(['home/alice/uploads/in'], bob)), /may not be read/);
      assert.match(await refusal(zipped(['home/alice/uploads/in/a.txt'], bob)), /may not be read/);
      assert.match(await refusal(staged(['home/alice/feeds/feed_1'])), /output folder/);
    });

    it('when something in a shared folder is kept from the reader', async () => {
      await shareFolder(temporary.database, 'home/bob/uploads/shared', alice, 'r');
      assert.deepEqual(await staged(['home/bob/uploads/shared']), {
        y: 'home/bob/uploads/shared/y',
        'hidden/z': 'home/bob/uploads/shared/hidden/z',
      });
      await shareFolder(temporary.database, 'home/bob/uploads/shared/hidden', bob, 'r');
      assert.match(await refusal(staged(['home/bob/uploads/shared'])), /shared\/hidden/);
    });

    it('when a chain of links does not end', async () => {
      for (let i = 0; i < 40; i += 1) await links(`chain-${i}`, `home/alice/uploads/chain-${i + 1}`);
      assert.match(await refusal(staged(['home/alice/uploads/chain-0'])), /more than 32 times/);
      assert.match(await refusal(zipped(['home/alice/uploads/chain-0'])), /more than 32 times/);
    });

    it('when links multiply', async () => {
      for (let i = 0; i < 14; i += 1) {
        const next = [`home/alice/uploads/double-${i + 1}`, `home/alice/uploads/double-${i + 1}`];
        await links(`double-${i}/one`, ...next);
        await links(`double-${i}/two`, ...next);
      }
      assert.match(await refusal(staged(['home/alice/uploads/double-0'])), /1000 times to the same/);
    });
  });

  describe('as a program sees it', () => {
    it('is empty for nothing, and for what has gone', async () => {
      assert.deepEqual(await staged([]), {});
      assert.deepEqual(await staged(['home/alice/uploads/gone']), {});
      assert.deepEqual(await staged([await links('dangling', 'home/alice/uploads/gone')]), {});
    });

    it('is what lies below the path, and nothing beside it', async () => {
      assert.deepEqual(await staged(['home/alice/uploads/in']), {
        'a.txt': 'home/alice/uploads/in/a.txt',
        'sub/b.txt': 'home/alice/uploads/in/sub/b.txt',
        'sub.more/c': 'home/alice/uploads/in/sub.more/c',
      });
    });

    it('is a file of its name', async () => {
      assert.deepEqual(await staged(['home/alice/uploads/in/sub/b.txt']), {
        'b.txt': 'home/alice/uploads/in/sub/b.txt',
      });
    });

    it('is merged from several paths; the first of two files for one place stays', async () => {
      assert.deepEqual(await staged(['home/alice/uploads/more', 'home/alice/uploads/in', 'home/alice/uploads/more']), {
        'a.txt': 'home/alice/uploads/more/a.txt',
        d: 'home/alice/uploads/more/d',
        'sub/b.txt': 'home/alice/uploads/in/sub/b.txt',
        'sub.more/c': 'home/alice/uploads/in/sub.more/c',
      });
    });

    it('has folders in place of links', async () => {
      const path = await links(
        'linked',
        'home/alice/uploads/in/sub',
        'home/alice/uploads/more/d',
        'home/alice/uploads/more/a.txt',
      );
      await makeLink(temporary.database, alice, `${path}/deep/x.chrislink`, 'home/alice/uploads/in/sub');
      assert.deepEqual(await staged([path]), {
        'home_alice_uploads_in_sub/b.txt': 'home/alice/uploads/in/sub/b.txt',
        'home_alice_uploads_more/d': 'home/alice/uploads/more/d',
        'home_alice_uploads_more/a.txt': 'home/alice/uploads/more/a.txt',
        'deep/home_alice_uploads_in_sub/b.txt': 'home/alice/uploads/in/sub/b.txt',
      });
    });

    it('ends where links lead in a circle', async () => {
      await links('round', 'home/alice/uploads/about', 'home/alice/uploads/round');
      await links('about', 'home/alice/uploads/round');
      await makeFile(temporary.database, alice, 'home/alice/uploads/about/f', 1);
      assert.deepEqual(await staged(['home/alice/uploads/round']), {
        'home_alice_uploads_about/f': 'home/alice/uploads/about/f',
      });
      assert.deepEqual(
        Object.keys(await zipped(['home/alice/uploads/round'])).filter((path) => path.endsWith('/f')),
        ['home/alice/uploads/about/f'],
      );
    });
  });

  it('is zipped with the links, and what they lead to under its whole path', async () => {
    const path = await links(
      'outputs',
      'home/alice/uploads/in/sub',
      'home/alice/uploads/in/sub/b.txt',
      'home/alice/uploads/more',
    );
    await makeFile(temporary.database, alice, `${path}/own/x`, 1);
    assert.deepEqual(await zipped([path]), {
      'l0.chrislink': '-> home/alice/uploads/in/sub',
      'l1.chrislink': '-> home/alice/uploads/in/sub/b.txt',
      'l2.chrislink': '-> home/alice/uploads/more',
      'own/x': `${path}/own/x`,
      'home/alice/uploads/in/sub/b.txt': 'home/alice/uploads/in/sub/b.txt',
      'home/alice/uploads/more/a.txt': 'home/alice/uploads/more/a.txt',
      'home/alice/uploads/more/d': 'home/alice/uploads/more/d',
    });
  });

  it('comes complete from many folders and many files', async () => {
    const { database } = temporary;
    const names = Array.from({ length: 2500 }, (_, i) => `home/alice/uploads/many/${i % 450}/${i}`);
    await makeFile(database, alice, 'home/alice/uploads/many/crowded/0', 1);
    for (const path of names.slice(0, 450)) await makeFile(database, alice, path, 1);
    const folders = new Map(
      (await database.selectFrom('folder').select(['id', 'path']).execute()).map((row) => [row.path, row.id]),
    );
    const crowded = Array.from({ length: 2100 }, (_, i) => `home/alice/uploads/many/crowded/x${i}`);
    const rows = [...names.slice(450), ...crowded].map((path) => ({
      folder_id: folders.get(folderOf(path)) ?? 0,
      name: nameOf(path),
      owner_id: alice.id,
      size_bytes: 1,
    }));
    await database.insertInto('file').values(rows).execute();
    const found = await staged(['home/alice/uploads/many']);
    assert.deepEqual(
      new Set(Object.values(found)),
      new Set([...names, ...crowded, 'home/alice/uploads/many/crowded/0']),
    );
  });
});
