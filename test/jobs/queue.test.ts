import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { sql } from 'kysely';
import { enqueue, enqueueAdvance, InvalidPayload, idOf } from '../../src/database/queue.ts';
import { type TemporaryDatabase, temporaryDatabase } from '../helpers/postgres.ts';

let temporary: TemporaryDatabase;
before(async () => {
  temporary = await temporaryDatabase();
});
after(() => temporary.close());

async function jobs() {
  const { rows } = await sql<{ key: string; later: boolean; locked_at: string | null }>`
    select key, run_at > now() as later, locked_at from graphile_worker.jobs order by id`.execute(temporary.database);
  return rows;
}

test('payloads are checked at the door of their task', () => {
  assert.equal(idOf('advance', { instanceId: 7 }), 7);
  for (const payload of [null, 7, 'x', [], {}, { instanceId: '7' }, { instanceId: 1.5 }, { feedId: 7 }]) {
    assert.throws(() => idOf('advance', payload), InvalidPayload);
  }
  assert.equal(idOf('removeFromStorage', {}), 0);
});

test('a job goes with its transaction; of one key only the last waits, and one is added to one that runs', async () => {
  const { database } = temporary;
  const rolledBack = database.transaction().execute(async (transaction) => {
    await enqueue(transaction, 'admit', { computeResourceId: 1 });
    throw new Error('rolled back');
  });
  await assert.rejects(rolledBack, /rolled back/);
  assert.deepEqual(await jobs(), []);
  await enqueue(database, 'advance', { instanceId: 1 }, { delaySeconds: 60 });
  assert.deepEqual(
    (await jobs()).map(({ key, later }) => ({ key, later })),
    [{ key: 'advance:1', later: true }],
  );
  await enqueueAdvance(database, [1, 2]);
  assert.deepEqual(
    (await jobs()).map(({ key, later }) => ({ key, later })),
    [
      { key: 'advance:1', later: false },
      { key: 'advance:2', later: false },
    ],
  );
  await sql`update graphile_worker._private_jobs set locked_at = now(), locked_by = 'w' where key = 'advance:1'`.execute(
    database,
  );
  await enqueueAdvance(database, [1]);
  assert.deepEqual(
    (await jobs()).map(({ key, locked_at }) => [key, locked_at !== null]),
    [
      [null, true],
      ['advance:2', false],
      ['advance:1', false],
    ],
  );
});
