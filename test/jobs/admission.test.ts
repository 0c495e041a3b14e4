import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { admit } from '../../src/jobs/admission.ts';
import { Bench, type Plugin, type User } from './bench.ts';

let bench: Bench;
let plugin: Plugin;
let alice: User;
let bob: User;
before(async () => {
  bench = await Bench.open({ HYPERCUBE_JOB_SLOTS: '2' });
  plugin = await bench.plugin('pl-run', 'fs', 'echo $$ > "$out/pid"; while [ ! -e "$out/go" ]; do sleep 0.05; done');
  alice = await bench.user('alice');
  bob = await bench.user('bob');
});
after(() => bench[Symbol.asyncDispose]());

async function admitted(): Promise<number[]> {
  const rows = await bench.services.database
    .selectFrom('plugin_instance')
    .select('id')
    .where('admitted', '=', true)
    .where('active', '=', true)
    .orderBy('id')
    .execute();
  return rows.map(({ id }) => id);
}

test('slots go round the owners, oldest first, and never more than there are', async () => {
  const { database } = bench.services;
  const ofAlice = [
    await bench.start(plugin, alice),
    await bench.start(plugin, alice),
    await bench.start(plugin, alice),
  ];
  const ofBob = [await bench.start(plugin, bob), await bench.start(plugin, bob)];
  assert.equal(await admit(database, bench.resourceId, 2, ofAlice[0]), true);
  assert.deepEqual(await admitted(), [ofAlice[0], ofBob[0]]);
  assert.equal(await admit(database, bench.resourceId, 2, ofAlice[1]), false);
  assert.deepEqual(await admitted(), [ofAlice[0], ofBob[0]]);
  await Promise.all([1, 2, 3].map(() => admit(database, bench.resourceId, 4)));
  assert.deepEqual(
    await admitted(),
    [ofAlice[0], ofAlice[1], ofBob[0], ofBob[1]],
    'asked at once, no slot is given twice',
  );
  await bench.cancel(ofBob[0] ?? 0, bob);
  await admit(database, bench.resourceId, 4);
  assert.deepEqual(await admitted(), [...ofAlice, ofBob[1]]);
  for (const id of ofAlice) await bench.cancel(id, alice);
  await bench.cancel(ofBob[1] ?? 0, bob);
});

test('with two slots two programs run, and the next begins when one has ended or is cancelled', async () => {
  await bench.startWorker();
  const ids = [];
  for (let count = 0; count < 4; count++) ids.push(await bench.start(plugin, alice));
  const [first = 0, second = 0, third = 0, fourth = 0] = ids;
  await bench.ended(first, ['started']);
  await bench.ended(second, ['started']);
  assert.deepEqual([await bench.status(third), await bench.status(fourth)], ['scheduled', 'scheduled']);
  await bench.pid(await bench.outputPath(first));
  await bench.touch(`${await bench.outputPath(first)}/go`);
  await bench.ended(third, ['started']);
  assert.equal(await bench.status(fourth), 'scheduled');
  await bench.cancel(second, alice);
  await bench.ended(fourth, ['started']);
  await bench.cancel(third, alice);
  await bench.cancel(fourth, alice);
  await bench.cleanedUp();
});
