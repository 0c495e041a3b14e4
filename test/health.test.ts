import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { createDatabase, createPool } from '../src/database/database.ts';
import { readiness } from '../src/health.ts';
import { buildServer } from '../src/server.ts';
import { openApplication, type TestApplication } from './helpers/application.ts';
import { freePort } from './helpers/server.ts';

const ignore = (): void => undefined;

test('one thing that is wrong makes the whole not ready, and is named', async () => {
  const found = await readiness(
    [
      { name: 'database', problem: async () => null },
      { name: 'worker', problem: async () => 'The worker has stopped.' },
    ],
    ignore,
  );
  assert.deepEqual(found, { status: 'not ready', checks: { database: 'ok', worker: 'The worker has stopped.' } });
});

test('what a check throws is reported, not shown', async () => {
  const reported: unknown[] = [];
  const failure = new Error('password "secret" refused');
  const problem = async (): Promise<null> => {
    throw failure;
  };
  const found = await readiness([{ name: 'database', problem }], (error) => reported.push(error));
  assert.equal(found.status, 'not ready');
  assert.doesNotMatch(JSON.stringify(found), /secret/);
  assert.deepEqual(reported, [failure]);
});

test('a check that never ends does not keep the answer back', async () => {
  const found = await readiness([{ name: 'database', problem: () => new Promise(ignore) }], ignore);
  assert.match(found.checks.database ?? '', /No answer within/);
});

describe('the probes of a server', () => {
  let workerProblem: string | null = null;
  let application: TestApplication;
  before(async () => {
    application = await openApplication([{ name: 'worker', problem: async () => workerProblem }]);
  });
  after(() => application.close());

  const probe = async (url: string) => {
    const { statusCode, body, headers } = await application.app.inject({ url });
    assert.equal(headers['cache-control'], 'no-store');
    return { status: statusCode, body: JSON.parse(body) };
  };

  test('it is ready when the database answers, is migrated, and the worker lives', async () => {
    assert.deepEqual(await probe('/readyz'), {
      status: 200,
      body: { status: 'ready', checks: { database: 'ok', migrations: 'ok', worker: 'ok' } },
    });
  });

  test('a worker that has stopped makes it not ready, but alive', async () => {
    workerProblem = 'The job worker has stopped.';
    const { status, body } = await probe('/readyz');
    assert.deepEqual([status, body.checks.worker], [503, workerProblem]);
    assert.equal((await probe('/healthz')).status, 200);
    workerProblem = null;
  });

  test('a database without all migrations makes it not ready', async () => {
    const { pool } = application.services;
    const { rows } = await pool.query('delete from schema_migration returning name, timestamp');
    const { status, body } = await probe('/readyz');
    assert.equal(status, 503);
    assert.match(body.checks.migrations, new RegExp(rows[0].name));
    for (const { name, timestamp } of rows)
      await pool.query('insert into schema_migration values ($1, $2)', [name, timestamp]);
    assert.equal((await probe('/readyz')).status, 200);
  });
});

test('without a database it is alive and not ready', async () => {
  const application = await openApplication();
  const nobody = `postgresql://nobody@127.0.0.1:${await freePort()}/none`;
  const pool = createPool({ connectionString: nobody }, 2, ignore);
  const app = await buildServer({ ...application.services, pool, database: createDatabase(pool) });
  try {
    assert.equal((await app.inject({ url: '/healthz' })).statusCode, 200);
    const answer = await app.inject({ url: '/readyz' });
    assert.equal(answer.statusCode, 503);
    const { checks } = JSON.parse(answer.body);
    assert.match(checks.database, /cannot be reached/);
    assert.match(checks.migrations, /cannot be reached/);
  } finally {
    await app.close();
    await pool.end();
    await application.close();
  }
});
