/** What must hold whenever a request is refused: its shape, and that it left nothing behind. */
import assert from 'node:assert/strict';
import { readdir } from 'node:fs/promises';
import { sql } from 'kysely';
import type { Bench } from '../instances/bench.ts';
import type { Reply } from './send.ts';

export const JSON_TYPE = 'application/json';
export const COLLECTION = 'application/vnd.collection+json';

/** How many rows a table has, for all tables at once. */
const COUNTS = sql<{ name: string; rows: string }>`select relname as name,
  (xpath('/row/count/text()', query_to_xml(format('select count(*) from public.%I', relname), false, true, '')))[1]::text as rows
  from pg_stat_user_tables where schemaname = 'public'`;

/** How many rows each table has, and which files lie in storage, half-received ones included. */
export async function contentsOf({ database, storage }: Bench): Promise<Readonly<Record<string, unknown>>> {
  const { rows } = await COUNTS.execute(database);
  const files = await readdir(storage, { recursive: true });
  return { ...Object.fromEntries(rows.map(({ name, rows: count }) => [name, Number(count)])), files: files.sort() };
}

/** The JSON form of an error, whatever format it came in. */
function errorOf({ headers, text }: Reply): Readonly<Record<string, unknown>> {
  const body: unknown = JSON.parse(text);
  assert.ok(typeof body === 'object' && body !== null && !Array.isArray(body), text);
  if (headers['content-type'] === JSON_TYPE) return { ...body };
  assert.equal(headers['content-type'], COLLECTION);
  const { collection }: { collection?: Record<string, unknown> } = { ...body };
  assert.deepEqual([Object.keys(collection ?? {}), collection?.version], [['version', 'href', 'error'], '1.0'], text);
  const { message }: { message?: unknown } = { ...(collection?.error ?? {}) };
  assert.ok(typeof message === 'string' && message !== '', text);
  return message.startsWith('{') ? JSON.parse(message) : { detail: message };
}

function isText(value: unknown): boolean {
  return typeof value === 'string' && value !== '';
}

/** A list of texts, or the one nested form that the reference has. */
function isProblem(value: unknown): boolean {
  if (Array.isArray(value)) return value.length > 0 && value.every(isText);
  return typeof value === 'object' && value !== null && Object.values(value).every(isProblem);
}

/** @param what for the message of a failure @returns the names that the refusal speaks of, `detail` among them */
export function checkRefusal(reply: Reply, what: string): readonly string[] {
  const shown = `${what}: ${reply.status} ${reply.text.slice(0, 300)}`;
  assert.ok(reply.status >= 400 && reply.status < 500, shown);
  const error = errorOf(reply);
  const names = Object.keys(error);
  assert.ok(names.length > 0, shown);
  for (const name of names) assert.ok(name === 'detail' ? isText(error[name]) : isProblem(error[name]), shown);
  return names;
}
