/** A process that changes rows and storage and dies at a given point of it. Arguments: database URL, root, kind, point. */
import { Readable } from 'node:stream';
import { createDatabase, createPool } from '../../src/database/database.ts';
import { ServerProcess } from '../../src/database/processes.ts';
import { FilesystemStorage } from '../../src/storage/filesystem.ts';
import { changeStorage, type StorageChange } from '../../src/storage/intents.ts';
import { silentLog } from '../helpers/postgres.ts';

const [url = '', root = '', kind = '', point = ''] = process.argv.slice(2);
const pool = createPool({ connectionString: url }, 4, () => undefined);
const database = createDatabase(pool);
const server = await ServerProcess.register(pool);
const storage = await FilesystemStorage.open(root, server.id);

/** Dies and lets nothing more happen. */
function die(): Promise<never> {
  process.kill(process.pid, 'SIGKILL');
  return new Promise(() => undefined);
}

async function around<T>(work: () => Promise<T>): Promise<T> {
  if (point === 'before storage') await die();
  const result = await work();
  if (point === 'after storage') await die();
  return result;
}

const place = storage.placeTentatively.bind(storage);
storage.placeTentatively = (incoming, path) => around(() => place(incoming, path));
const move = storage.move.bind(storage);
storage.move = (from, to) => around(() => move(from, to));
const discard = storage.discard.bind(storage);
storage.discard = (incoming) => (point === 'after commit' ? die() : discard(incoming));
storage.remove = () => die();

async function changeOf(): Promise<StorageChange> {
  if (kind === 'put') {
    return { kind, incoming: await storage.receive(Readable.from([Buffer.from('new')])), path: 'home/new' };
  }
  if (kind === 'move') return { kind, from: 'home/folder', to: 'home/moved' };
  return { kind: 'remove', path: 'home/folder' };
}

await changeStorage({ database, storage, process: server, log: silentLog }, [await changeOf()], async (transaction) => {
  await transaction.insertInto('account_group').values({ name: 'the rows were changed' }).execute();
  if (point === 'in the rows') await die();
});
if (point === 'after commit') await die();
