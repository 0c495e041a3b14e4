import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { sql } from 'kysely';
import { createPool } from '../../src/database/database.ts';
import { migrate, pendingMigrations, UnsuitableDatabase } from '../../src/database/migrate.ts';
import { type TemporaryDatabase, temporaryDatabase } from '../helpers/postgres.ts';

let temporary: TemporaryDatabase;
before(async () => {
  temporary = await temporaryDatabase();
});
after(() => temporary.close());

async function evaluate(expression: string): Promise<unknown> {
  const { rows } = await temporary.pool.query<{ value: unknown }>(`select ${expression} as value`);
  return rows[0]?.value;
}

test('a whole number that JavaScript cannot hold exactly is an error, not another number', async () => {
  await assert.rejects(evaluate('9007199254740993::bigint'), RangeError);
  await assert.rejects(evaluate('array[9007199254740993::bigint]'), RangeError);
});

test('values of PostgreSQL have one form, whatever the time zone of the process', async () => {
  assert.equal(await evaluate('9007199254740991::bigint'), 9007199254740991);
  assert.deepEqual(await evaluate('array[1, -2]::bigint[]'), [1, -2]);
  assert.deepEqual(await evaluate("'{}'::bigint[]"), []);
  assert.equal(await evaluate("'2026-11-21 04:34:07.371376+02'::timestamptz"), '2026-11-21T02:34:07.371376Z');
  assert.equal(await evaluate("'2026-11-21 02:34:07+00'::timestamptz"), '2026-11-21T02:34:07Z');
  assert.equal(await evaluate("'2026-11-21'::date"), '2026-11-21');
});

test('names are ordered by their bytes and folded as Unicode says', async () => {
  const { rows } = await temporary.pool.query<{ name: string }>(
    `select name collate pg_c_utf8 as name from unnest(array['b', 'B', 'ä', 'a']) as name order by 1`,
  );
  assert.deepEqual(
    rows.map((row) => row.name),
    ['B', 'a', 'b', 'ä'],
  );
  assert.equal(await evaluate("lower('ÄÉ' collate pg_c_utf8)"), 'äé');
});

test('a database that a newer version has migrated is refused', async () => {
  const newer = await temporaryDatabase();
  try {
    await sql`insert into schema_migration (name, timestamp) values ('9999_later', '2030-01-01')`.execute(
      newer.database,
    );
    await assert.rejects(migrate(newer.pool), (error) => {
      assert.ok(error instanceof UnsuitableDatabase);
      assert.match(error.message, /9999_later/);
      return true;
    });
  } finally {
    await newer.close();
  }
});

test('processes that start at once migrate one after the other', async () => {
  const empty = await temporaryDatabase();
  const pools = [1, 2, 3].map(() => createPool(empty.connection, 3, () => undefined));
  try {
    await empty.pool.query('drop schema public cascade; create schema public; drop schema graphile_worker cascade');
    await Promise.all(pools.map((pool) => migrate(pool)));
    assert.deepEqual(await pendingMigrations(empty.database), []);
    const { rows } = await empty.pool.query<{ count: number }>('select count(*) from graphile_worker.jobs');
    assert.equal(rows[0]?.count, 0);
  } finally {
    await Promise.all(pools.map((pool) => pool.end()));
    await empty.close();
  }
});
