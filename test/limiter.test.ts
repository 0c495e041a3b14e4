import assert from 'node:assert/strict';
import test from 'node:test';
import { setImmediate as turn } from 'node:timers/promises';
import { Limiter } from '../src/limiter.ts';

test('never more at once than allowed, in the order of asking, and all of them', async () => {
  const limiter = new Limiter(2);
  const begun: number[] = [];
  let running = 0;
  let most = 0;
  const work = (number: number) => async (): Promise<number> => {
    begun.push(number);
    running += 1;
    most = Math.max(most, running);
    await turn();
    running -= 1;
    return number;
  };
  const numbers = [0, 1, 2, 3, 4, 5, 6];
  assert.deepEqual(await Promise.all(numbers.map((number) => limiter.run(work(number)))), numbers);
  assert.deepEqual(begun, numbers);
  assert.equal(most, 2);
});

test('a failure is its own only, and gives its place to the next', async () => {
  const limiter = new Limiter(1);
  const failing = limiter.run(() => Promise.reject(new Error('broken')));
  const next = limiter.run(async () => 'done');
  await assert.rejects(failing, /broken/);
  assert.equal(await next, 'done');
  assert.equal(await limiter.run(async () => 'again'), 'again');
});
