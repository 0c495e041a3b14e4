/** The filters of search routes: each reads one query parameter and adds one condition. */
import { type RawBuilder, sql } from 'kysely';
import { invalid } from './errors.ts';
import type { DataType } from './resource.ts';
import type { Parameter, Scope } from './statement.ts';

export interface Filter {
  readonly name: string;
  readonly type: DataType;
  /** The only values that are understood. */
  readonly choices?: readonly string[];
  /** Not listed in `queries`, though it works. */
  readonly unlisted?: boolean;
  /** What it filters by when the parameter is missing or empty. */
  readonly fallback?: string;
  /** Another filter that takes its place when that one is set. */
  readonly unless?: string;
  /** The value to bind; undefined when this text means "not filtered". @throws {InvalidFields} naming the filter */
  readonly parse: (text: string, name: string) => unknown;
  readonly condition: (value: Parameter, scope: Scope) => RawBuilder<unknown>;
}

type Column = RawBuilder<unknown>;

const LARGEST = 9223372036854775807n;

/** A decimal number as an exact fraction of integers, or an error that names the filter. */
function decimal(text: string, name: string): { floor: bigint; exact: boolean } {
  const match = /^([+-]?)(\d{1,1000})(?:\.(\d{0,1000}))?$/.exec(text);
  if (!match) throw invalid(name, `"${text.slice(0, 100)}" is not a number. Enter a number such as 17.`);
  const exact = !/[1-9]/.test(match[3] ?? '');
  const whole = BigInt(match[2] ?? '0');
  const signed = match[1] === '-' ? -whole : whole;
  return { floor: match[1] === '-' && !exact ? signed - 1n : signed, exact };
}

function clamp(value: bigint): string {
  return String(value > LARGEST ? LARGEST : value < -LARGEST ? -LARGEST : value);
}

/** The integer that equals the text; null, which equals nothing, for fractions and for numbers that no id can have. */
export function parseInteger(text: string, name: string): string | null {
  const { floor, exact } = decimal(text, name);
  return exact && floor <= LARGEST && floor >= -LARGEST ? String(floor) : null;
}

/** @throws {InvalidFields} for what no text in the database holds */
export function parseText(text: string, name: string): string {
  if (text.includes('\0')) throw invalid(name, 'Null characters are not allowed.');
  return text;
}

/** `%` and `_` in a word that is searched for stand for themselves. */
export function likePattern(word: string): string {
  return word.replace(/[\\%_]/g, '\\$&');
}

const DATE =
  /^\d{4}-\d{2}-\d{2}(?:[T ]\d{2}:\d{2}(?::\d{2}(?:[.,]\d{1,9})?)?(?:Z|[+-](?:0\d|1[0-4])(?::?[0-5]\d)?)?)?$/i;

/** An ISO 8601 date or date-time as PostgreSQL reads it; without an offset it is UTC. */
export function parseDate(text: string, name: string): string {
  const [year = 0, month = 0, day = 0] = text.slice(0, 10).split('-').map(Number);
  const calendar = new Date(Date.UTC(year, month - 1, day));
  const onCalendar = calendar.getUTCMonth() === month - 1 && calendar.getUTCDate() === day && year > 0;
  const [hour = 0, minute = 0, second = 0] = text.slice(11, 19).split(':').map(Number);
  const onClock = hour < 24 && minute < 60 && !(second >= 60);
  if (!DATE.test(text) || !onCalendar || !onClock) {
    throw invalid(
      name,
      `"${text.slice(0, 100)}" is not a date. Enter an ISO 8601 date or date-time such as 2026-11-21T02:34:07Z.`,
    );
  }
  return text.replace(',', '.');
}

function filter(name: string, type: DataType, parse: Filter['parse'], condition: Filter['condition']): Filter {
  return { name, type, parse, condition };
}

export const equalNumber = (name: string, column: Column): Filter =>
  filter(name, 'integer', parseInteger, (value) => sql`${column} = ${value}::bigint`);

export const atLeastNumber = (name: string, column: Column): Filter =>
  filter(
    name,
    'integer',
    (text) => {
      const { floor, exact } = decimal(text, name);
      return clamp(exact ? floor : floor + 1n);
    },
    (value) => sql`${column} >= ${value}::bigint`,
  );

export const atMostNumber = (name: string, column: Column): Filter =>
  filter(
    name,
    'integer',
    (text) => clamp(decimal(text, name).floor),
    (value) => sql`${column} <= ${value}::bigint`,
  );

export const since = (name: string, column: Column): Filter =>
  filter(name, 'date-time', parseDate, (value) => sql`${column} >= ${value}::timestamptz`);

export const until = (name: string, column: Column): Filter =>
  filter(name, 'date-time', parseDate, (value) => sql`${column} <= ${value}::timestamptz`);

/** Equality, case-sensitive. */
export const exactly = (name: string, column: Column): Filter =>
  filter(name, 'string', parseText, (value) => sql`${column} = ${value}`);

/** Substring of any of the columns, ignoring case. */
export const contains = (name: string, ...columns: readonly Column[]): Filter =>
  filter(
    name,
    'string',
    (text) => `%${likePattern(parseText(text, name))}%`,
    (value) =>
      sql`(${sql.join(
        columns.map((column) => sql`${column} ilike ${value}`),
        sql` or `,
      )})`,
  );

/** Beginning of the text, case-sensitive. */
export const startsWith = (name: string, column: Column): Filter =>
  filter(
    name,
    'string',
    (text) => `${likePattern(parseText(text, name))}%`,
    (value) => sql`${column} like ${value}`,
  );

/** One of a few values; another one is an error. */
export const oneOf = (name: string, column: Column, choices: readonly string[]): Filter => ({
  ...filter(
    name,
    'string',
    (text) => {
      if (!choices.includes(text))
        throw invalid(name, `"${text.slice(0, 100)}" is not one of the choices: ${choices.join(', ')}.`);
      return text;
    },
    (value) => sql`${column} = ${value}`,
  ),
  choices,
});

/** `true` or `false`; anything else does not filter. */
export const flag = (name: string, column: Column): Filter =>
  filter(
    name,
    'boolean',
    (text) => (/^true$/i.test(text) ? true : /^false$/i.test(text) ? false : undefined),
    (value) => sql`${column} = ${value}::boolean`,
  );

/** A filter with a condition of its own. */
export function special(name: string, type: DataType, parse: Filter['parse'], condition: Filter['condition']): Filter {
  return filter(name, type, parse, condition);
}
