/**
 * The PostgreSQL that comes with the program, for one machine: in a data folder, reached by a socket there, by nobody else.
 *
 * Terminology
 *   cluster      the files of the database, `<data>/postgres`
 *   postmaster   the running PostgreSQL of a cluster; started by the first process of ours that needs it, used by the others,
 *                stopped by the last one
 *   hold         a session that says, by advisory locks, that its process uses the postmaster; it ends with the process,
 *                however that ends
 */
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import { type Account, chooseAccount, ensureOwner } from './embedded/account.ts';
import { type Binaries, findBinaries, messageOf } from './embedded/binaries.ts';
import { ensureCluster, SUPERUSER } from './embedded/cluster.ts';
import {
  findPostmaster,
  hasStopped,
  isHeldByOrphans,
  type Postmaster,
  readLogEnd,
  type ServerSettings,
  startPostmaster,
  stopPostmaster,
  waitForEnd,
} from './embedded/postmaster.ts';
import { DatabaseError, DataFolderInUse } from './errors.ts';

/** Recovery after a crash of the machine may take its time. */
const START_SECONDS = 300;
/** Between two tries to start while processes of a PostgreSQL that was killed have yet to end. */
const ORPHANS_MILLISECONDS = 100;
const DATABASE = 'hypercube';
/** First half of the advisory locks' keys, in the database `postgres`, which nothing else uses. */
const LOCK_SPACE = 7_201_905;
const IN_USE = 1;
const SERVER = 2;

export interface EmbeddedOptions {
  /** Whether this process is the server of the data folder, of which there is at most one. */
  readonly asServer: boolean;
  /** Called when PostgreSQL goes while it is needed. */
  readonly onLost: (error: Error) => void;
  readonly settings?: ServerSettings;
}

export interface EmbeddedDatabase {
  readonly url: string;
  /** Stops PostgreSQL unless another process uses it. */
  close(): Promise<void>;
}

interface Place {
  readonly folder: string;
  readonly binaries: Binaries;
  readonly account: Account;
  readonly options: EmbeddedOptions;
}

interface Hold {
  readonly postmaster: Postmaster;
  readonly session: pg.Client;
}

/**
 * Makes, starts or finds the PostgreSQL of a data folder.
 * @throws {DataFolderInUse} when there is a server already, {DatabaseError} when it cannot be made or started.
 */
export async function openEmbedded(dataFolder: string, options: EmbeddedOptions): Promise<EmbeddedDatabase> {
  await mkdir(dataFolder, { recursive: true, mode: 0o711 });
  const binaries = await findBinaries();
  const account = await chooseAccount(binaries);
  const place: Place = { folder: join(dataFolder, 'postgres'), binaries, account, options };
  await ensureCluster(place.folder, binaries, account);

  const hold = await takeHold(place);
  let closing = false;
  hold.session.once('end', () => {
    if (!closing) options.onLost(new DatabaseError(`PostgreSQL has ended; see ${place.folder}.log.`));
  });
  await ensureDatabase(hold.session);
  return {
    url: urlOf(hold.postmaster.socketFolder, DATABASE),
    async close() {
      closing = true;
      await letGo(place, hold);
    },
  };
}

async function takeHold(place: Place): Promise<Hold> {
  const deadline = Date.now() + START_SECONDS * 1000;
  let postmaster: Postmaster | null = null;
  while (Date.now() < deadline) {
    postmaster ??= await findOrStart(place);
    const session = await connect(postmaster);
    if (session !== null) return claim(place, { postmaster, session });
    if (hasStopped(postmaster)) postmaster = await afterFailedStart(place, postmaster);
    await sleep(10);
  }
  throw new DatabaseError(`PostgreSQL does not answer. Its log ends with:\n${await readLogEnd(place.folder)}`);
}

async function findOrStart(place: Place): Promise<Postmaster> {
  const running = await findPostmaster(place.folder);
  if (running !== null) return running;
  await ensureOwner(place.folder, place.account);
  return startPostmaster(place.folder, place.binaries, place.account, place.options.settings ?? {});
}

/**
 * One that we started and that ended at once has failed, unless another process had started one a moment before, or what is
 * left of one that was killed has yet to end. null: it is to be tried again.
 */
async function afterFailedStart(place: Place, ended: Postmaster): Promise<Postmaster | null> {
  const other = await findPostmaster(place.folder);
  if (other === null && ended.child !== null && ended.child.exitCode !== 0) {
    if (await isHeldByOrphans(place.folder)) {
      await sleep(ORPHANS_MILLISECONDS);
      return null;
    }
    throw new DatabaseError(`PostgreSQL does not start. Its log ends with:\n${await readLogEnd(place.folder)}`);
  }
  return other;
}

/** null: not yet, or no longer. */
async function connect(postmaster: Postmaster): Promise<pg.Client | null> {
  const session = new pg.Client({
    connectionString: urlOf(postmaster.socketFolder, 'postgres'),
    application_name: 'hypercube hold',
  });
  // A lost connection is seen by its `end`.
  session.on('error', () => undefined);
  try {
    await session.connect();
    // waits while another process is stopping PostgreSQL, which ends this session too
    await session.query('select pg_advisory_lock_shared($1, $2)', [LOCK_SPACE, IN_USE]);
    return session;
  } catch {
    await session.end();
    return null;
  }
}

async function claim(place: Place, hold: Hold): Promise<Hold> {
  if (!place.options.asServer || (await tryLock(hold.session, SERVER))) return hold;
  await letGo(place, hold);
  throw new DataFolderInUse(
    `Another server is running on the data folder of ${place.folder}. Stop it first, or set HYPERCUBE_DATA to another folder.`,
  );
}

/** Nobody can take hold while we have the lock exclusively, so nobody loses a postmaster that they just found. */
async function letGo(place: Place, hold: Hold): Promise<void> {
  try {
    await hold.session.query('select pg_advisory_unlock_shared($1, $2)', [LOCK_SPACE, IN_USE]);
    if (await tryLock(hold.session, IN_USE)) await stopPostmaster(place.folder, hold.postmaster);
  } catch (error) {
    // PostgreSQL is already going, or gone, for another reason.
    const ended = await waitForEnd(place.folder, hold.postmaster);
    if (!ended) throw new DatabaseError(`PostgreSQL could not be stopped: ${messageOf(error)}`, { cause: error });
  } finally {
    await hold.session.end();
  }
}

async function tryLock(session: pg.Client, key: number): Promise<boolean> {
  const { rows } = await session.query<{ taken: boolean }>('select pg_try_advisory_lock($1, $2) as taken', [
    LOCK_SPACE,
    key,
  ]);
  return rows[0]?.taken === true;
}

async function ensureDatabase(session: pg.Client): Promise<void> {
  const { rowCount } = await session.query('select 1 from pg_database where datname = $1', [DATABASE]);
  if (rowCount !== 0) return;
  try {
    await session.query(`create database ${DATABASE}`);
  } catch (error) {
    // made by another process meanwhile: duplicate_database, or unique_violation when both were at it
    if (!(error instanceof pg.DatabaseError) || !['42P04', '23505'].includes(error.code ?? '')) throw error;
  }
}

function urlOf(socketFolder: string, database: string): string {
  return `postgresql://${SUPERUSER}@localhost/${database}?host=${encodeURIComponent(socketFolder)}`;
}
