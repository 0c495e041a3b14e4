/** Databases for tests, each of its own, on one real PostgreSQL for the whole test process. */
import { readdir, rm } from 'node:fs/promises';
import { after } from 'node:test';
import type pg from 'pg';
import { pino } from 'pino';
import { type ConnectionOptions, createDatabase, createPool, type Database } from '../../src/database/database.ts';
import { isAlive } from '../../src/database/embedded/cluster.ts';
import { findPostmaster, stopPostmaster } from '../../src/database/embedded/postmaster.ts';
import { type EmbeddedDatabase, openEmbedded } from '../../src/database/embedded.ts';
import { migrate } from '../../src/database/migrate.ts';

export interface TemporaryDatabase {
  readonly pool: pg.Pool;
  readonly database: Database;
  readonly connection: ConnectionOptions;
  /** `postgresql://…`, as HYPERCUBE_DATABASE_URL holds it. */
  readonly url: string;
  close(): Promise<void>;
}

const PREFIX = 'hypercube-postgres-';
const FOLDER = `/tmp/${PREFIX}${process.pid}`;
const TEMPLATE = 'migrated';
const FORCED_STOP_MILLISECONDS = 5000;
const ignore = (): void => undefined;

interface Server {
  readonly embedded: EmbeddedDatabase;
  /** Connected to the maintenance database. */
  readonly pool: pg.Pool;
}

let server: Promise<Server> | null = null;
let count = 0;
let open = 0;
let ending = false;
let forced: NodeJS.Timeout | undefined;
let latest: Promise<unknown> = Promise.resolve();

// This hook runs before those of the test file: whichever database is closed last takes the server with it. The timer is for
// files that failed before they could close theirs.
after(async () => {
  ending = true;
  if (open === 0) await stopServer();
  else forced = setTimeout(stopServer, FORCED_STOP_MILLISECONDS);
});

/** A new, migrated database. `close` it in the test's or file's `after`; the server ends with the test process. */
export async function temporaryDatabase(): Promise<TemporaryDatabase> {
  server ??= startServer();
  const { embedded, pool: maintenance } = await server;
  count += 1;
  const name = `test_${count}`;
  // One at a time: PostgreSQL copies a template only while nobody else uses it.
  latest = latest.then(() => maintenance.query(`create database ${name} template ${TEMPLATE} strategy file_copy`));
  await latest;
  const url = urlOf(embedded, name);
  const connection = { connectionString: url };
  const pool = createPool(connection, 10, ignore);
  open += 1;
  return {
    pool,
    database: createDatabase(pool),
    connection,
    url,
    async close() {
      await pool.end();
      await maintenance.query(`drop database ${name} with (force)`);
      open -= 1;
      if (ending && open === 0) await stopServer();
    },
  };
}

/** A log that keeps quiet. */
export const silentLog = pino({ level: 'silent' });

async function startServer(): Promise<Server> {
  await removeLeftovers();
  const embedded = await openEmbedded(FOLDER, {
    asServer: false,
    onLost: (error) => {
      throw error;
    },
    // The machine's crash is not what these tests are about.
    settings: { fsync: 'off', shared_buffers: '32MB' },
  });
  const maintenance = createPool({ connectionString: urlOf(embedded, 'postgres') }, 2, ignore);
  await maintenance.query(`create database ${TEMPLATE}`);
  const template = createPool({ connectionString: urlOf(embedded, TEMPLATE) }, 2, ignore);
  await migrate(template);
  await template.end();
  return { embedded, pool: maintenance };
}

async function stopServer(): Promise<void> {
  clearTimeout(forced);
  if (server === null) return;
  const { embedded, pool } = await server;
  server = null;
  await pool.end();
  await embedded.close();
  await rm(FOLDER, { recursive: true, force: true });
}

/** Of test processes that were killed. */
async function removeLeftovers(): Promise<void> {
  for (const name of await readdir('/tmp')) {
    if (!name.startsWith(PREFIX) || isAlive(Number(name.slice(PREFIX.length)))) continue;
    const cluster = `/tmp/${name}/postgres`;
    const postmaster = await findPostmaster(cluster);
    if (postmaster !== null) await stopPostmaster(cluster, postmaster);
    await rm(`/tmp/${name}`, { recursive: true, force: true });
  }
}

function urlOf(embedded: EmbeddedDatabase, database: string): string {
  const url = new URL(embedded.url);
  url.pathname = `/${database}`;
  return url.href;
}
