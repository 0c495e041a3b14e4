import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Bench } from './bench.ts';

test('a tree runs to its end: children start after their parents, outputs have rows, sizes and logs', async () => {
  await using bench = await Bench.open();
  await bench.startWorker();
  const alice = await bench.user('alice');
  const root = await bench.plugin(
    'pl-root',
    'fs',
    'echo made; mkdir "$out/sub"; echo 12345 > "$out/sub/a,b.txt"; echo x > "$out/bad.chrislink"',
  );
  const copy = await bench.plugin('pl-copy', 'ds', 'cp -r "$in/." "$out/"; echo done >&2');
  const first = await bench.start(root, alice, { title: 'first' });
  const second = await bench.start(copy, alice, { previous_id: first });
  const third = await bench.start(copy, alice, { previous_id: second });
  const end = await bench.ended(third);
  assert.deepEqual([end.status, end.error_code, end.size_bytes], ['finishedSuccessfully', '', 6]);
  assert.match(end.job_logs, /done/);
  assert.deepEqual(await bench.outputs(first), { 'sub/ab.txt': 6 });
  assert.deepEqual(await bench.outputs(third), { 'sub/ab.txt': 6 });
  assert.equal(bench.read(`${await bench.outputPath(third)}/sub/ab.txt`), '12345\n');
  assert.equal(bench.exists(`${await bench.outputPath(first)}/bad.chrislink`), false);
  await bench.cleanedUp();
  const tokens = await bench.services.database.selectFrom('api_token').select('id').where('kind', '=', 'job').execute();
  assert.deepEqual(tokens, [], 'tokens of programs end with them');
});
