/** The SQL of lists, searches and items, made from their declarations once for each role that asks. */
import { type Kysely, type RawBuilder, sql } from 'kysely';
import type { Caller, Role, Rule } from '../access/caller.ts';
import { type FieldErrors, Forbidden, InvalidFields, NotAuthenticated, NotFound } from './errors.ts';
import type { Filter } from './filters.ts';
import type { Page } from './paging.ts';
import { fieldSql, fieldsFor, type Resource } from './resource.ts';
import type { Order, Search } from './routes.ts';
import {
  allOf,
  callerSql,
  callerValues,
  LIMIT,
  OFFSET,
  Parameter,
  pathParameter,
  type Queryable,
  type Row,
  type Scope,
  Statement,
  scopeOf,
  type Values,
} from './statement.ts';

/** One object that a caller may see, or why not. */
export class ItemSelection {
  readonly #database: Kysely<never>;
  readonly #of: Resource;
  readonly #rule: Rule;
  readonly #statements = new Map<Role, Statement>();

  /** @param rule what the caller must be allowed; null: reading */
  constructor(database: Kysely<never>, of: Resource, rule: Rule | null) {
    this.#database = database;
    this.#of = of;
    this.#rule = rule ?? of.read;
  }

  /** @throws {NotFound} {NotAuthenticated} {Forbidden} */
  async find(connection: Queryable, caller: Caller, id: number): Promise<Row> {
    const [row] = await this.#statement(caller.role).rows(connection, { ...callerValues(caller), id });
    if (row === undefined) throw new NotFound(this.#of.name);
    if (row['#allowed'] !== true) throw caller.role === 'anonymous' ? new NotAuthenticated() : new Forbidden();
    return row;
  }

  #statement(role: Role): Statement {
    const known = this.#statements.get(role);
    if (known !== undefined) return known;
    const made = new Statement(this.#database, this.#query(role));
    this.#statements.set(role, made);
    return made;
  }

  #query(role: Role): RawBuilder<unknown> {
    const of = this.#of;
    const caller = callerSql(role);
    const columns = fieldsFor(of, role).map((field) => sql`${fieldSql(of, field, caller)} as ${sql.id(field.name)}`);
    const allowed = this.#rule(of.alias, caller);
    const conditions = [sql`${of.id} = ${pathParameter('id')}`, ...(of.where ? [of.where] : [])];
    return sql`select ${sql.join(columns)}, (${allowed}) as "#allowed" from ${of.from} where ${allOf(conditions)}`;
  }
}

export interface ListDeclaration {
  readonly of: Resource;
  readonly from?: RawBuilder<unknown> | undefined;
  readonly where?: ((scope: Scope) => RawBuilder<unknown>) | undefined;
  readonly order: Order;
  readonly search?: Search | undefined;
}

export interface Found {
  readonly rows: readonly Row[];
  readonly total: number;
}

const NONE: ReadonlyMap<string, unknown> = new Map();

/** Anybody can ask for any combination of filters, and there are too many to keep a statement for each. */
const STATEMENTS_KEPT = 64;

/** A page of a list with the number of all its members, in one statement. */
export class ListSelection {
  readonly #database: Kysely<never>;
  readonly #declaration: ListDeclaration;
  readonly #statements = new Map<string, Statement>();

  constructor(database: Kysely<never>, declaration: ListDeclaration) {
    this.#database = database;
    this.#declaration = declaration;
  }

  /** @param filters parsed values by filter @param sort name of one of the search's orders */
  async find(
    connection: Queryable,
    caller: Caller,
    path: Values,
    page: Page,
    filters = NONE,
    sort = '',
  ): Promise<Found> {
    const statement = this.#statement(caller.role, [...filters.keys()], sort);
    const rows = await statement.rows(connection, {
      ...path,
      ...Object.fromEntries([...filters].map(([name, value]) => [filterParameter(name), value])),
      ...callerValues(caller),
      limit: page.limit,
      offset: page.offset,
    });
    // the outer join gives one row of nulls for an empty page
    const found = rows.filter((row) => row.id !== null);
    return { rows: found, total: Number(rows[0]?.['#total'] ?? 0) };
  }

  #statement(role: Role, filterNames: readonly string[], sort: string): Statement {
    const key = [role, sort, ...filterNames].join(' ');
    const known = this.#statements.get(key);
    if (known !== undefined) return known;
    const kept = this.#statements.size < STATEMENTS_KEPT;
    const made = new Statement(this.#database, this.#query(role, filterNames, sort), kept);
    if (kept) this.#statements.set(key, made);
    return made;
  }

  #query(role: Role, filterNames: readonly string[], sort: string): RawBuilder<unknown> {
    const { of, where, order, search } = this.#declaration;
    const scope = scopeOf(role);
    const columns = fieldsFor(of, role).map(
      (field) => sql`${fieldSql(of, field, scope.caller)} as ${sql.id(field.name)}`,
    );
    const conditions = [
      ...(of.where ? [of.where] : []),
      ...(where ? [where(scope)] : []),
      ...(search?.filters ?? [])
        .filter((filter) => filterNames.includes(filter.name))
        .map((filter) => filter.condition(new Parameter(filterParameter(filter.name)), scope)),
    ];
    const condition = allOf(conditions);
    const orderBy = search?.sort?.orders[sort] ?? (typeof order === 'function' ? order(scope) : order);
    const from = this.#declaration.from ?? of.from;
    // the page's ids come first, so that fields are made and tables joined for its rows only
    const ids = sql`select ${of.id} from ${from} where ${condition} order by ${orderBy} limit ${LIMIT}::bigint offset ${OFFSET}::bigint`;
    return sql`select counted."#total", page.* from
      (select count(*) as "#total" from ${from} where ${condition}) counted left join lateral
      (select ${sql.join(columns)} from ${of.from} where ${of.id} = any (array(${ids})) order by ${orderBy}) page on true`;
  }
}

function filterParameter(name: string): string {
  return `filter ${name}`;
}

/** The filters that a query string sets, parsed. @throws {InvalidFields} naming all that cannot be read */
export function readFilters(filters: readonly Filter[], query: URLSearchParams): ReadonlyMap<string, unknown> {
  const values = new Map<string, unknown>();
  let problems: FieldErrors = {};
  for (const filter of filters) {
    const given = query.getAll(filter.name).at(-1)?.trim() ?? '';
    const text = given === '' ? filter.fallback : given;
    if (text === undefined || (filter.unless !== undefined && values.has(filter.unless))) continue;
    try {
      const value = filter.parse(text, filter.name);
      if (value !== undefined) values.set(filter.name, value);
    } catch (error) {
      if (!(error instanceof InvalidFields)) throw error;
      problems = { ...problems, ...error.fields };
    }
  }
  if (Object.keys(problems).length > 0) throw new InvalidFields(problems);
  return values;
}
