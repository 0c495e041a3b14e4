/** Connections to PostgreSQL, and how its values become ours. */
import { Kysely, type Transaction as KyselyTransaction, PostgresDialect } from 'kysely';
import pg from 'pg';
import type { DB } from './generated.ts';

export type Database = Kysely<DB>;
export type Transaction = KyselyTransaction<DB>;
/** Either: for functions that run inside of a transaction or on their own. */
export type Queries = Kysely<DB>;

/** `2026-11-21 02:34:07.371376+00` as ISO 8601: `2026-11-21T02:34:07.371376Z`. Sessions are in UTC. */
export function timestampText(text: string): string {
  return `${text.slice(0, 10)}T${text.slice(11).replace(/\+00(:00)?$/, 'Z')}`;
}

/** Ids are JSON numbers on the wire; one beyond what JSON readers keep exactly would be a different id. */
export function bigintNumber(text: string): number {
  const number = Number(text);
  if (!Number.isSafeInteger(number)) throw new RangeError(`${text} cannot be written exactly as a JSON number`);
  return number;
}

const { builtins } = pg.types;
const PARSERS: Readonly<Record<number, (text: string) => unknown>> = {
  [builtins.INT8]: bigintNumber,
  [builtins.TIMESTAMPTZ]: timestampText,
  [builtins.DATE]: (text) => text,
  // int8[]
  1016: (text) => (text === '{}' ? [] : text.slice(1, -1).split(',').map(bigintNumber)),
};

const types: pg.CustomTypesConfig = {
  getTypeParser: (oid: number, format?: 'text' | 'binary') => {
    const own = format === 'binary' ? undefined : PARSERS[oid];
    return own ?? pg.types.getTypeParser(oid, format);
  },
};

export interface ConnectionOptions {
  readonly connectionString?: string;
  readonly host?: string;
  readonly port?: number;
  readonly user?: string;
  readonly database?: string;
}

/** @param onConnectionLost told of connections that break, idle or not; a query that fails with one is told by itself */
export function createPool(
  connection: ConnectionOptions,
  size: number,
  onConnectionLost: (error: Error) => void,
): pg.Pool {
  const pool = new pg.Pool({
    ...connection,
    max: size,
    types,
    application_name: 'hypercube',
    options: '-c timezone=UTC -c datestyle=ISO',
    idleTimeoutMillis: 60_000,
    connectionTimeoutMillis: 10_000,
    keepAlive: true,
  });
  pool.on('connect', (client) => client.on('error', onConnectionLost));
  // repeats what an idle connection has said to its own listener, and would end the process without a listener
  pool.on('error', () => undefined);
  return pool;
}

export function createDatabase(pool: pg.Pool): Database {
  return new Kysely<DB>({ dialect: new PostgresDialect({ pool }) });
}
