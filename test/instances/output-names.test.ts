import assert from 'node:assert/strict';
import { test } from 'node:test';
import { planOutputs } from '../../src/instances/output-names.ts';

function planned(...paths: string[]) {
  return planOutputs(paths).map((action) => (action.kind === 'delete' ? null : action.path));
}

test('commas go from names; blank files are deleted, blank folders dissolved', () => {
  assert.deepEqual(planned('a.txt', 'b,c/d,e.txt'), ['a.txt', 'bc/de.txt']);
  assert.deepEqual(planned(',', ' ,', 'x/,,'), [null, null, null]);
  assert.deepEqual(planned(',/a.txt', 'x/ , /b.txt'), ['a.txt', 'x/b.txt']);
});

test('none takes the place of another', () => {
  assert.deepEqual(planned('a,b.txt', 'ab.txt', 'ab,.txt'), ['ab_1.txt', 'ab.txt', 'ab_2.txt']);
  assert.deepEqual(planned(',/a', 'a'), ['a_1', 'a']);
  assert.deepEqual(planned('.,x', '.x'), ['.x_1', '.x']);
});

test('link files are refused, also those that a comma hides; no name becomes a way out', () => {
  assert.deepEqual(planOutputs(['a.chrislink']), [{ kind: 'delete', from: 'a.chrislink', refused: true }]);
  assert.deepEqual(planned('a.chris,link', ',../x', '.,./y', 'z/,.'), [null, null, null, null]);
});

test('what is clean already stays, so that a second run changes nothing', () => {
  const paths = ['a.txt', 'sub/b.txt', 'sub/c_1.txt'];
  assert.deepEqual(planned(...paths), paths);
});
