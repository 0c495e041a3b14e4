/** Brings a database to the tables that this version of the program needs. */
import { runMigrations } from 'graphile-worker';
import { sql } from 'kysely';
import { type Migration, Migrator } from 'kysely/migration';
import type { Pool } from 'pg';
import { createDatabase, type Database } from './database.ts';
import * as foundation from './migrations/0001_foundation.ts';

/** In order; a released one is never changed. */
const MIGRATIONS: Readonly<Record<string, Migration>> = {
  '0001_foundation': foundation,
};

const OLDEST_POSTGRESQL = 17;

export class UnsuitableDatabase extends Error {
  override readonly name = 'UnsuitableDatabase';
}

async function requireSuitable(database: Database): Promise<void> {
  const { rows } = await sql<{ version: number; encoding: string }>`
    select current_setting('server_version_num')::integer as version, current_setting('server_encoding') as encoding`.execute(
    database,
  );
  const { version = 0, encoding = '' } = rows[0] ?? {};
  const major = Math.floor(version / 10_000);
  if (major < OLDEST_POSTGRESQL) {
    throw new UnsuitableDatabase(`The database is PostgreSQL ${major}; ${OLDEST_POSTGRESQL} or newer is needed.`);
  }
  if (encoding !== 'UTF8')
    throw new UnsuitableDatabase(
      `The database has the encoding ${encoding}; UTF8 is needed. Create it with: create database … encoding 'UTF8'.`,
    );
}

function migratorOf(database: Database): Migrator {
  return new Migrator({
    db: database,
    provider: { getMigrations: () => Promise.resolve({ ...MIGRATIONS }) },
    migrationTableName: 'schema_migration',
    migrationLockTableName: 'schema_migration_lock',
  });
}

/** Names of the migrations that have not run yet. @throws {UnsuitableDatabase} when the database is newer than the program */
export async function pendingMigrations(database: Database): Promise<readonly string[]> {
  const known = await migratorOf(database).getMigrations();
  await requireKnown(database);
  return known.filter((migration) => migration.executedAt === undefined).map((migration) => migration.name);
}

async function requireKnown(database: Database): Promise<void> {
  const { rows } = await sql<{
    present: boolean;
  }>`select to_regclass('schema_migration') is not null as present`.execute(database);
  if (!rows[0]?.present) return;
  const ran = await sql<{ name: string }>`select name from schema_migration`.execute(database);
  const unknown = ran.rows.filter(({ name }) => !(name in MIGRATIONS)).map(({ name }) => name);
  if (unknown.length > 0) {
    throw new UnsuitableDatabase(
      `The database was made by a newer version of the program (it has ${unknown.join(', ')}). Start that version.`,
    );
  }
}

/** Several processes may call it at once: each waits for the one that is at it. @throws {UnsuitableDatabase} */
export async function migrate(pool: Pool): Promise<void> {
  const database = createDatabase(pool);
  await requireSuitable(database);
  await requireKnown(database);
  const { error } = await migratorOf(database).migrateToLatest();
  if (error) throw error;
  await runMigrations({ pgPool: pool });
}
