/** Connections to PostgreSQL, and how its values look in the program. */
import { Kysely, PostgresDialect } from 'kysely';
import pg from 'pg';
import type { Logger } from 'pino';
import type { DB } from './generated.ts';

export type Database = Kysely<DB>;

export interface PoolOptions {
  readonly url: string;
  /** Most connections at once. */
  readonly size: number;
  /** What PostgreSQL shows in `pg_stat_activity`. */
  readonly applicationName: string;
  readonly log: Pick<Logger, 'warn'>;
}

export function openPool(options: PoolOptions): pg.Pool {
  const pool = new pg.Pool({
    ...connectionSettings(options.url, options.applicationName),
    max: options.size,
    idleTimeoutMillis: 60_000,
  });
  // A connection that is lost while idle; the next query gets another one.
  pool.on('error', (error) => options.log.warn({ err: error }, 'a database connection was lost'));
  return pool;
}

/** What every connection of ours has, for clients outside the pool too. */
export function connectionSettings(url: string, applicationName: string): pg.ClientConfig {
  return {
    connectionString: url,
    application_name: applicationName,
    // value parsers rely on both
    options: '-c TimeZone=UTC -c DateStyle=ISO',
    types: { getTypeParser },
    keepAlive: true,
    connectionTimeoutMillis: 30_000,
  };
}

/** Statements for a pool. The pool stays its owner's: ending it is not this object's business. */
export function openDatabase(pool: pg.Pool): Database {
  return new Kysely<DB>({ dialect: new PostgresDialect({ pool }) });
}

/** PostgreSQL's `2026-11-21 02:34:07.371376+00` (session in UTC) as ISO 8601: `2026-11-21T02:34:07.371376Z`. */
export function parseTimestamp(value: string): string {
  return value.endsWith('+00') ? `${value.slice(0, 10)}T${value.slice(11, -3)}Z` : value;
}

/** @throws {RangeError} beyond the whole numbers that a JavaScript number holds exactly. */
export function parseBigInteger(value: string): number {
  const number = Number(value);
  if (!Number.isSafeInteger(number)) throw new RangeError(`${value} is too large for a number.`);
  return number;
}

const asText = (value: string): string => value;

/** By the object ids of PostgreSQL's own types (`pg_type.dat`). */
const PARSERS: ReadonlyMap<number, (value: string) => unknown> = new Map<number, (value: string) => unknown>([
  [20, parseBigInteger], // int8
  [1016, (value) => pg.types.arrayParser(value, parseBigInteger)], // int8[]
  [1082, asText], // date
  [1184, parseTimestamp], // timestamptz
  [1185, (value) => pg.types.arrayParser(value, parseTimestamp)], // timestamptz[]
]);

const getTypeParser: typeof pg.types.getTypeParser = (oid: number, format?: 'text' | 'binary') => {
  const parser = format === 'binary' ? undefined : PARSERS.get(oid);
  return parser ?? pg.types.getTypeParser(oid, format);
};
