/** `hypercube migrate`: for operators who want it done before the servers start. */
import { loadConfig } from '../config.ts';
import { createLog } from '../log.ts';
import { openMigrated } from './runtime.ts';

export async function migrateDatabase(): Promise<void> {
  const config = loadConfig(process.env);
  const log = createLog(config, process.stderr);
  const database = await openMigrated({
    config,
    log,
    asServer: false,
    onLost: (error) => log.error({ err: error }, 'the database was lost'),
  });
  await database.close();
  process.stdout.write('The database has the form that this version needs.\n');
}
