/** SQL that is written once, with symbolic parameters, and run many times as a prepared statement. */
import { type Kysely, type RawBuilder, sql } from 'kysely';
import type { Pool, PoolClient } from 'pg';
import type { Caller, CallerSql, Role } from '../access/caller.ts';

/** Stands in SQL for a value that each run brings. */
export class Parameter {
  readonly name: string;
  constructor(name: string) {
    this.name = name;
  }
}

export type Values = Readonly<Record<string, unknown>>;
export type Row = Readonly<Record<string, unknown>>;
export type Queryable = Pick<Pool | PoolClient, 'query'>;

export const LIMIT = new Parameter('limit');
export const OFFSET = new Parameter('offset');
const CALLER_ID = new Parameter('caller');
const CALLER_FEED = new Parameter('caller feed');

/** The caller of a statement that is compiled for one role. */
export function callerSql(role: Role): CallerSql {
  return { role, id: sql`${CALLER_ID}::integer`, feedId: sql`${CALLER_FEED}::bigint` };
}

/** The values that a statement needs of its caller. */
export function callerValues(caller: Caller): Values {
  return { caller: caller.id, 'caller feed': caller.feedId };
}

/** What the conditions of a route may refer to. */
export interface Scope {
  readonly caller: CallerSql;
  /** A number of the path, by its name. */
  readonly path: (name: string) => RawBuilder<number>;
}

/** Ids in a path may be larger than any that exists, so they are compared as 64 bit. */
export function pathParameter(name: string): RawBuilder<number> {
  return sql<number>`${new Parameter(name)}::bigint`;
}

export function scopeOf(role: Role): Scope {
  return { caller: callerSql(role), path: pathParameter };
}

let statementCount = 0;

export class Statement {
  readonly #name: string | undefined;
  readonly #text: string;
  readonly #parameters: readonly unknown[];

  /** @param prepared each connection keeps its plan for as long as it lives */
  constructor(database: Kysely<never>, query: RawBuilder<unknown>, prepared = true) {
    const compiled = query.compile(database);
    statementCount += 1;
    this.#name = prepared ? `hypermedia_${statementCount}` : undefined;
    this.#text = compiled.sql;
    this.#parameters = compiled.parameters;
  }

  async rows(connection: Queryable, values: Values): Promise<readonly Row[]> {
    const bound = this.#parameters.map((parameter) =>
      parameter instanceof Parameter ? (values[parameter.name] ?? null) : parameter,
    );
    const result = await connection.query<Row>({
      ...(this.#name && { name: this.#name }),
      text: this.#text,
      values: bound,
    });
    return result.rows;
  }
}

/** `and` of all conditions; true for none. */
export function allOf(conditions: readonly RawBuilder<unknown>[]): RawBuilder<unknown> {
  if (conditions.length === 0) return sql`true`;
  return sql.join(
    conditions.map((condition) => sql`(${condition})`),
    sql` and `,
  );
}
