/** What commands work with: a migrated database, and the services on top of it. */
import { type Config, loadConfig } from '../config.ts';
import { type ConnectionOptions, createPool } from '../database/database.ts';
import { type EmbeddedDatabase, openEmbedded } from '../database/embedded.ts';
import { migrate } from '../database/migrate.ts';
import { createLog, type Log } from '../log.ts';
import { ensureBuiltinPlugins } from '../plugins/builtin.ts';
import { type OpenServices, openServices, type Services } from '../services.ts';
import { type FirstAdministrator, prepareAdministrator, tellPassword } from './first-administrator.ts';

export interface RuntimeOptions {
  readonly config: Config;
  readonly log: Log;
  /** Whether this process is the server of its data folder. */
  readonly asServer: boolean;
  /** Called when the process cannot go on: others may take over what it was doing. */
  readonly onLost: (error: Error) => void;
}

export interface Runtime {
  readonly services: Services;
  readonly administrator: FirstAdministrator;
  close(): Promise<void>;
}

interface MigratedDatabase {
  readonly connection: ConnectionOptions;
  close(): Promise<void>;
}

/** Starts or reaches PostgreSQL and migrates the database. */
export async function openMigrated(options: RuntimeOptions): Promise<MigratedDatabase> {
  const { config } = options;
  const embedded: EmbeddedDatabase | null =
    config.databaseUrl === null ? await openEmbedded(config.data, options) : null;
  const connection = { connectionString: embedded?.url ?? config.databaseUrl ?? '' };
  const close = async () => embedded?.close();
  try {
    await migrateWith(connection, options.log);
    return { connection, close };
  } catch (error) {
    await close();
    throw error;
  }
}

async function migrateWith(connection: ConnectionOptions, log: Log): Promise<void> {
  const pool = createPool(connection, 2, (error) => log.warn({ err: error }, 'a database connection broke'));
  try {
    await migrate(pool);
  } finally {
    await pool.end();
  }
}

/** Opens everything, and makes what has to be there from the first start on. */
export async function openRuntime(options: RuntimeOptions): Promise<Runtime> {
  const database = await openMigrated(options);
  let services: OpenServices | null = null;
  const close = async () => {
    try {
      await services?.close();
    } finally {
      await database.close();
    }
  };
  try {
    services = await openServices(options.config, database.connection, options.log);
    services.process.on('lost', options.onLost);
    const administrator = await prepareAdministrator(services);
    await ensureBuiltinPlugins(services);
    return { services, administrator, close };
  } catch (error) {
    await close();
    throw error;
  }
}

/** For commands that do one thing: opens everything, does it, and closes everything. Logs go to standard error. */
export async function withServices<T>(work: (services: Services) => Promise<T>): Promise<T> {
  const config = loadConfig(process.env);
  const log = createLog({ ...config, logLevel: 'warn' }, process.stderr);
  const runtime = await openRuntime({
    config,
    log,
    asServer: false,
    onLost: (error) => log.error({ err: error }, 'the database was lost'),
  });
  try {
    tellPassword(runtime.administrator);
    return await work(runtime.services);
  } finally {
    await runtime.close();
  }
}
