/** Writes `generated.ts` from the tables of a freshly migrated database: `npm run database:types`. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Cli } from 'kysely-codegen';
import { createPool } from './database.ts';
import { openEmbedded } from './embedded.ts';
import { migrate } from './migrate.ts';

const fail = (error: Error): void => {
  throw error;
};

const folder = await mkdtemp(join(tmpdir(), 'hypercube-types-'));
try {
  const embedded = await openEmbedded(folder, { asServer: false, onLost: fail, settings: { fsync: 'off' } });
  try {
    const pool = createPool({ connectionString: embedded.url }, 2, fail);
    await migrate(pool).finally(() => pool.end());
    await new Cli().run({
      argv: [
        `--url=${embedded.url}`,
        '--dialect=postgres',
        '--include-pattern=public.*',
        '--exclude-pattern=public.schema_migration*',
        `--out-file=${fileURLToPath(new URL('generated.ts', import.meta.url))}`,
        `--type-mapping=${JSON.stringify({ int8: 'number', timestamptz: 'string' })}`,
      ],
    });
  } finally {
    await embedded.close();
  }
} finally {
  await rm(folder, { recursive: true, force: true });
}
