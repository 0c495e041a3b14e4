import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { text } from 'node:stream/consumers';
import { after, afterEach, before, beforeEach, describe, it } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import { sql } from 'kysely';
import { findDeadProcesses, forgetProcess, ServerProcess } from '../../src/database/processes.ts';
import { AlreadyThere } from '../../src/storage/errors.ts';
import { FilesystemStorage } from '../../src/storage/filesystem.ts';
import { changeStorage, recoverIntents, type StorageContext } from '../../src/storage/intents.ts';
import { silentLog, type TemporaryDatabase, temporaryDatabase } from '../helpers/postgres.ts';

const DYING = join(import.meta.dirname, 'dying.ts');

describe('changing rows and storage together', () => {
  let temporary: TemporaryDatabase;
  let living: ServerProcess;
  let root: string;
  let storage: FilesystemStorage;
  let context: StorageContext;

  before(async () => {
    temporary = await temporaryDatabase();
    living = await ServerProcess.register(temporary.pool);
  });
  after(async () => {
    await living.release();
    await temporary.close();
  });
  beforeEach(async () => {
    root = await mkdtemp(join(tmpdir(), 'intents-'));
    storage = await FilesystemStorage.open(root, living.id);
    context = { database: temporary.database, storage, process: living, log: silentLog };
    for (const name of ['a', 'deep/b']) await put(`home/folder/${name}`, name);
  });
  afterEach(async () => {
    await temporary.database.deleteFrom('account_group').execute();
    await rm(root, { recursive: true, force: true });
  });

  const put = async (path: string, content: string) =>
    storage.place(await storage.receive(Readable.from([Buffer.from(content)])), path);
  const stored = async (path = 'home') => (await Array.fromAsync(storage.list(path))).map((file) => file.path).sort();
  const intents = () => temporary.database.selectFrom('storage_intent').selectAll().execute();
  const groups = async () => (await temporary.database.selectFrom('account_group').select('name').execute()).length;
  const insertGroup = async (transaction: Parameters<Parameters<typeof changeStorage>[2]>[0]) => {
    await transaction.insertInto('account_group').values({ name: 'the rows were changed' }).execute();
  };
  const nothingIsLeft = async () => {
    assert.deepEqual(await intents(), []);
    assert.deepEqual(await readdir(join(root, '.incoming')), []);
    assert.deepEqual(await stored('.trash'), []);
  };
  const OLD = ['home/folder/a', 'home/folder/deep/b'];

  /** What a server does that finds the dead. */
  const recover = async () => {
    let dead = await findDeadProcesses(temporary.database);
    for (let i = 0; i < 500 && dead.length === 0; i += 1) {
      await pause(10);
      dead = await findDeadProcesses(temporary.database);
    }
    const ids = dead.map((process) => process.id);
    assert.equal(ids.length, 1);
    await recoverIntents(context, ids);
    await recoverIntents(context, ids);
    await storage.removeLeftovers(ids);
    for (const id of ids) await forgetProcess(temporary.database, id);
  };
  const dieAt = async (kind: string, point: string) => {
    const child = spawn(process.execPath, [DYING, temporary.url, root, kind, point], {
      stdio: ['ignore', 'ignore', 'inherit'],
    });
    const [, signal] = await once(child, 'exit');
    assert.equal(signal, 'SIGKILL');
  };

  describe('a process is killed', () => {
    for (const kind of ['put', 'move', 'remove']) {
      for (const point of ['in the rows', 'before storage', 'after storage']) {
        it(`in a ${kind}, ${point}: nothing was changed`, async () => {
          await dieAt(kind, point);
          assert.equal((await intents()).length, 1);
          await recover();
          assert.equal(await groups(), 0);
          assert.deepEqual(await stored(), OLD);
          await nothingIsLeft();
        });
      }
    }

    const results = { put: [...OLD, 'home/new'], move: ['home/moved/a', 'home/moved/deep/b'], remove: [] };
    for (const [kind, expected] of Object.entries(results)) {
      it(`after a ${kind} was committed: it is done`, async () => {
        await dieAt(kind, 'after commit');
        await recover();
        assert.equal(await groups(), 1);
        assert.deepEqual(await stored(), expected);
        await nothingIsLeft();
      });
    }

    it('and somebody uploads to the old place before it is found: both are kept', async () => {
      await dieAt('remove', 'after storage');
      await put('home/folder/c', 'later');
      await recover();
      assert.deepEqual(await stored(), ['home/folder/a', 'home/folder/c', 'home/folder/deep/b']);
      await nothingIsLeft();
    });

    it('and what could not be undone at once is undone later', async () => {
      await dieAt('move', 'after storage');
      await put('home/folder/a', 'in the way');
      await recover();
      assert.equal((await intents()).length, 1);
      assert.equal(await text(await storage.read('home/folder/a')), 'in the way');
      await storage.remove('home/folder/a');
      assert.equal(await recoverIntents(context, []), 1);
      assert.deepEqual(await stored(), OLD);
      await nothingIsLeft();
    });
  });

  describe('is refused and leaves everything as it was', () => {
    it('when the rows cannot be changed', async () => {
      const incoming = await storage.receive(Readable.from([Buffer.from('new')]));
      const changes = [
        { kind: 'put', incoming, path: 'home/new' },
        { kind: 'move', from: 'home/folder', to: 'home/moved' },
      ] as const;
      await assert.rejects(
        changeStorage(context, changes, async () => {
          throw new Error('no');
        }),
        /^Error: no$/,
      );
      assert.deepEqual(await stored(), OLD);
      await nothingIsLeft();
    });

    it('when a later change of storage fails', async () => {
      const incoming = await storage.receive(Readable.from([Buffer.from('new')]));
      const changes = [
        { kind: 'move', from: 'home/folder/deep', to: 'home/deep' },
        { kind: 'remove', path: 'home/folder/a' },
        { kind: 'put', incoming, path: 'home/deep/b' },
      ] as const;
      await assert.rejects(changeStorage(context, changes, insertGroup), AlreadyThere);
      assert.equal(await groups(), 0);
      assert.deepEqual(await stored(), OLD);
      await nothingIsLeft();
    });

    it('when something lies at the target, which stays', async () => {
      await put('home/taken', 'taken');
      const incoming = await storage.receive(Readable.from([Buffer.from('new')]));
      await assert.rejects(
        changeStorage(context, [{ kind: 'put', incoming, path: 'home/taken' }], insertGroup),
        AlreadyThere,
      );
      await assert.rejects(
        changeStorage(context, [{ kind: 'move', from: 'home/folder', to: 'home/taken' }], insertGroup),
        AlreadyThere,
      );
      assert.equal(await text(await storage.read('home/taken')), 'taken');
      assert.equal(await groups(), 0);
      await nothingIsLeft();
    });

    it('when others took it for dead', async () => {
      const incoming = await storage.receive(Readable.from([Buffer.from('new')]));
      const { database } = context;
      // The intents are noted, and settled by others before the work begins.
      const late = {
        ...context,
        database: database.withPlugin({
          transformQuery: ({ node }) => node,
          transformResult: async ({ result }) => result,
        }),
      };
      const begin = late.database.transaction.bind(late.database);
      late.database.transaction = () => {
        const builder = begin();
        const execute = builder.execute.bind(builder);
        builder.execute = async (work) => {
          await recoverIntents(context, [living.id]);
          return execute(work);
        };
        return builder;
      };
      await assert.rejects(
        changeStorage(late, [{ kind: 'put', incoming, path: 'home/new' }], insertGroup),
        /took this one for dead/,
      );
      assert.equal(await storage.exists('home/new'), false);
      assert.equal(await groups(), 0);
      await nothingIsLeft();
    });
  });

  it('waits for a living process that is taken for dead', async () => {
    const incoming = await storage.receive(Readable.from([Buffer.from('new')]));
    let recovery: Promise<number> | undefined;
    await changeStorage(context, [{ kind: 'put', incoming, path: 'home/new' }], async (transaction) => {
      recovery = recoverIntents(context, [living.id]);
      await insertGroup(transaction);
    });
    await recovery;
    assert.deepEqual(await stored(), [...OLD, 'home/new']);
    assert.equal(await groups(), 1);
    await nothingIsLeft();
  });

  it('keeps an incoming file that has no place yet for whoever wants to try another path', async () => {
    const incoming = await storage.receive(Readable.from([Buffer.from('new')]));
    const put = { kind: 'put', incoming, path: 'home/folder/a', keepIfRefused: true } as const;
    await assert.rejects(changeStorage(context, [put], insertGroup), AlreadyThere);
    await changeStorage(context, [{ ...put, path: 'home/folder/other' }], insertGroup);
    assert.equal(await text(await storage.read('home/folder/other')), 'new');
    await nothingIsLeft();
  });

  it('keeps what tells which bytes are to be taken back, until they are', async () => {
    const incoming = await storage.receive(Readable.from([Buffer.from('new')]));
    storage.takeBack = () => Promise.reject(new Error('the disk does not answer'));
    const cutOff = changeStorage(context, [{ kind: 'put', incoming, path: 'home/new' }], async (transaction) => {
      // a failure after the bytes were placed, as when the database goes at the commit
      await transaction.insertInto('account_group').values({ name: 'one' }).execute();
      await sql`create temporary table broken (n integer check (n > 0) , unique (n) deferrable initially deferred)
        on commit drop`.execute(transaction);
      await sql`insert into broken values (1), (1)`.execute(transaction);
    });
    await assert.rejects(cutOff, /unique/);
    await storage.discard(incoming);
    assert.deepEqual(await stored(), [...OLD, 'home/new']);
    const next = await FilesystemStorage.open(root, living.id + 1);
    assert.equal(await recoverIntents({ ...context, storage: next }, [living.id]), 1);
    assert.deepEqual(await stored(), OLD);
    await nothingIsLeft();
  });

  it('does all of it when nothing goes wrong', async () => {
    const incoming = await storage.receive(Readable.from([Buffer.from('new')]));
    const changes = [
      { kind: 'put', incoming, path: 'home/new/x' },
      { kind: 'move', from: 'home/folder/deep', to: 'home/elsewhere/deep' },
      { kind: 'remove', path: 'home/folder' },
      { kind: 'remove', path: 'home/never/was' },
    ] as const;
    const result = await changeStorage(context, changes, async (transaction) => {
      await insertGroup(transaction);
      return 'result';
    });
    assert.equal(result, 'result');
    assert.deepEqual(await stored(), ['home/elsewhere/deep/b', 'home/new/x']);
    assert.equal(await groups(), 1);
    await nothingIsLeft();
  });

  it('leaves the path of something removed free at once', async () => {
    await changeStorage(context, [{ kind: 'remove', path: 'home/folder' }], async () => {});
    await put('home/folder/a', 'again');
    assert.equal(await recoverIntents(context, [living.id]), 0);
    assert.equal(await text(await storage.read('home/folder/a')), 'again');
  });
});
