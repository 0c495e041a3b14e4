import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { Turns } from '../../src/jobs/turns.ts';
import { type TemporaryDatabase, temporaryDatabase } from '../helpers/postgres.ts';

let database: TemporaryDatabase;
before(async () => {
  database = await temporaryDatabase();
});
after(() => database.close());

test('whoever comes while the work is done has it done once more, and never at the same time', async () => {
  const turns = new Turns(database.pool);
  let running = 0;
  let runs = 0;
  let enter = (): void => undefined;
  const entered = new Promise<void>((resolve) => {
    enter = resolve;
  });
  let release = (): void => undefined;
  const released = new Promise<void>((resolve) => {
    release = resolve;
  });
  const work = async () => {
    running += 1;
    runs += 1;
    assert.equal(running, 1);
    enter();
    await released;
    running -= 1;
  };
  const first = turns.take(1, work);
  await entered;
  assert.equal(await turns.take(1, work), 'left to this process');
  assert.equal(await turns.take(1, work), 'left to this process');
  assert.equal(await turns.take(2, async () => undefined), 'taken', 'others go on');
  release();
  assert.equal(await first, 'taken');
  assert.equal(runs, 2);
  await turns.close();
});

test('another process is told to come again, until the work is done or its session has ended', async () => {
  const here = new Turns(database.pool);
  const there = new Turns(database.pool);
  let seen = '';
  await here.take(1, async () => {
    seen = await there.take(1, async () => assert.fail('at the same time'));
  });
  assert.equal(seen, 'held by another process');
  assert.equal(await there.take(1, async () => undefined), 'taken');
  await here.take(3, async () => {
    await here.close();
    await new Promise((resolve) => setTimeout(resolve, 50));
    seen = await there.take(3, async () => undefined);
  });
  assert.equal(seen, 'taken');
  await here.close();
  await there.close();
});

test('work that throws leaves its turn free', async () => {
  const turns = new Turns(database.pool);
  await assert.rejects(
    turns.take(1, async () => {
      throw new Error('no');
    }),
    /no/,
  );
  assert.equal(await turns.take(1, async () => undefined), 'taken');
  await turns.close();
});
