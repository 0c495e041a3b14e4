import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { moveTo } from '../../src/instances/transitions.ts';
import { advance } from '../../src/jobs/advance.ts';
import { Bench, type User } from './bench.ts';

let bench: Bench;
let alice: User;
before(async () => {
  bench = await Bench.open();
  alice = await bench.user('alice');
});
after(() => bench[Symbol.asyncDispose]());

const LONG = 'echo $$ > "$out/pid"; exec sleep 60';

test('cancelling ends the process, the descendants and the outputs, and leaves siblings alone', async () => {
  await bench.startWorker();
  const root = await bench.start(await bench.plugin('pl-root', 'fs', 'echo 1 > "$out/1"'), alice);
  const long = await bench.plugin('pl-long', 'ds', LONG);
  const victim = await bench.start(long, alice, { previous_id: root });
  const kid = await bench.start(long, alice, { previous_id: victim });
  const sibling = await bench.start(await bench.plugin('pl-short', 'ds', 'sleep 0.2'), alice, { previous_id: root });
  const path = await bench.outputPath(victim);
  const pid = await bench.pid(path);
  assert.equal((await bench.cancel(victim, alice)).status, 200);
  assert.deepEqual([await bench.status(victim), await bench.status(kid)], ['cancelled', 'cancelled']);
  await bench.eventually(() => !bench.isRunning(pid));
  await bench.cleanedUp();
  assert.equal(bench.exists(path), false);
  assert.equal((await bench.ended(sibling)).status, 'finishedSuccessfully');
  assert.equal(await bench.status(root), 'finishedSuccessfully');
  assert.equal((await bench.cancel(root, alice)).status, 400);
  await bench.stopWorker();
});

test('of a cancel and an end at the same moment one wins, and the other changes nothing', async () => {
  const id = await bench.start(await bench.plugin('pl-race', 'fs', 'echo 1 > "$out/1"'), alice);
  const context = bench.context();
  await bench.advanceUntil(context, id, 'registeringFiles');
  await bench.cancel(id, alice);
  await advance(context, id);
  assert.equal(await bench.status(id), 'cancelled');
  assert.deepEqual(await bench.outputs(id), {}, 'an output of a cancelled instance gets no row');
  const { database } = bench.services;
  const moved = await database
    .transaction()
    .execute((transaction) => moveTo(transaction, id, 'registeringFiles', 'finishedSuccessfully'));
  assert.equal(moved, false);
  assert.equal(await bench.status(id), 'cancelled');
  await context.engines.close();
});

test('cancelling while children and joins wait for different parents cancels those that need the cancelled one', async () => {
  const root = await bench.start(await bench.plugin('pl-first', 'fs', 'true'), alice);
  const plugin = await bench.plugin('pl-next', 'ds', 'true');
  const one = await bench.start(plugin, alice, { previous_id: root });
  const two = await bench.start(plugin, alice, { previous_id: root });
  const join = await bench.start(await bench.builtin('pl-topologicalcopy'), alice, {
    previous_id: one,
    plugininstances: `${one},${two}`,
  });
  await bench.cancel(two, alice);
  assert.deepEqual(
    [await bench.status(root), await bench.status(one), await bench.status(join)],
    ['scheduled', 'waiting', 'cancelled'],
  );
});
