import assert from 'node:assert/strict';
import { once } from 'node:events';
import { afterEach, beforeEach, test } from 'node:test';
import { findDeadProcesses, forgetProcess, ServerProcess } from '../../src/database/processes.ts';
import { type TemporaryDatabase, temporaryDatabase } from '../helpers/postgres.ts';

let temporary: TemporaryDatabase;
beforeEach(async () => {
  temporary = await temporaryDatabase();
});
afterEach(() => temporary.close());

async function breakSession(id: number): Promise<void> {
  const { rowCount } = await temporary.pool.query(
    `select pg_terminate_backend(pid) from pg_locks where locktype = 'advisory' and objid = $1 and pid != pg_backend_pid()
      and database = (select oid from pg_database where datname = current_database())`,
    [id],
  );
  assert.equal(rowCount, 1);
}

test('a process whose session breaks is told, and is dead for the others', async () => {
  const { pool, database } = temporary;
  const [living, dying] = [await ServerProcess.register(pool), await ServerProcess.register(pool)];
  await dying.recordWorkers(['worker-1', 'worker-2']);
  assert.deepEqual(await findDeadProcesses(database), []);
  const lost = once(dying, 'lost');
  await breakSession(dying.id);
  await lost;
  assert.deepEqual(await findDeadProcesses(database), [{ id: dying.id, workerIds: ['worker-1', 'worker-2'] }]);
  await forgetProcess(database, dying.id);
  assert.deepEqual(await findDeadProcesses(database), []);
  await dying.release();
  await living.release();
});

test('a process that leaves in order leaves nothing', async () => {
  const process = await ServerProcess.register(temporary.pool);
  await process.release();
  assert.deepEqual(await findDeadProcesses(temporary.database), []);
  const left = await temporary.database.selectFrom('server_process').select('id').execute();
  assert.deepEqual(left, []);
});
