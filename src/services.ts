/** What every part of the server shares, opened once at start. */
import { join } from 'node:path';
import type { Pool } from 'pg';
import type { Config } from './config.ts';
import { type ConnectionOptions, createDatabase, createPool, type Database } from './database/database.ts';
import { ServerProcess } from './database/processes.ts';
import type { Log } from './log.ts';
import { loadSecrets, type Secrets } from './secrets.ts';
import { FilesystemStorage } from './storage/filesystem.ts';

export interface Services {
  readonly config: Config;
  readonly log: Log;
  readonly pool: Pool;
  readonly database: Database;
  readonly secrets: Secrets;
  readonly storage: FilesystemStorage;
  /** This process among those that share the database. */
  readonly process: ServerProcess;
}

export interface OpenServices extends Services {
  close(): Promise<void>;
}

/** @param connection to a database that is migrated */
export async function openServices(config: Config, connection: ConnectionOptions, log: Log): Promise<OpenServices> {
  const secrets = await loadSecrets(config);
  // one connection is held by the process's lock
  const pool = createPool(connection, config.databasePoolSize + 1, (error) =>
    log.warn({ err: error }, 'a database connection broke; another one takes its place'),
  );
  let process: ServerProcess | null = null;
  const close = async (): Promise<void> => {
    try {
      await process?.release();
    } finally {
      await pool.end();
    }
  };
  try {
    process = await ServerProcess.register(pool);
    const storage = await FilesystemStorage.open(join(config.data, 'storage'), process.id);
    return { config, log, pool, database: createDatabase(pool), secrets, storage, process, close };
  } catch (error) {
    await close();
    throw error;
  }
}
