import assert from 'node:assert/strict';
import { test } from 'node:test';
import { NotAcceptable, NotFound } from '../../src/hypermedia/errors.ts';
import { negotiate } from '../../src/hypermedia/negotiation.ts';

const COLLECTION = 'application/vnd.collection+json';

test('what nobody can produce is refused', () => {
  for (const accept of ['text/plain', 'garbage', 'image/png, text/csv', '', 'application/json;q=0']) {
    assert.throws(() => negotiate(accept, null), NotAcceptable, accept);
  }
});

test('an unknown format is not found, whatever Accept says', () => {
  assert.throws(() => negotiate('application/json', 'xml'), NotFound);
  assert.throws(() => negotiate(undefined, 'constructor'), NotFound);
});

test('a format that Accept rules out is refused', () => {
  assert.throws(() => negotiate('application/json', 'api'), NotAcceptable);
});

test('the most specific range wins, quality decides, ties go to Collection+JSON', () => {
  const cases: readonly [string | undefined, string][] = [
    [undefined, COLLECTION],
    ['*/*', COLLECTION],
    ['application/*', COLLECTION],
    ['application/json, */*', 'application/json'],
    ['image/png, application/json;q=0.5', 'application/json'],
    ['application/json, application/vnd.collection+json', COLLECTION],
    ['application/json;q=0.1, application/vnd.collection+json', COLLECTION],
    ['application/vnd.collection+json;q=0.1, application/json', 'application/json'],
    ['text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8', 'text/html'],
    ['APPLICATION/JSON', 'application/json'],
  ];
  for (const [accept, expected] of cases) assert.equal(negotiate(accept, null).type, expected, String(accept));
});

test('indentation is read from the range that was chosen, within its bounds', () => {
  assert.equal(negotiate('application/json; indent=2', null).indent, 2);
  assert.equal(negotiate('application/json; indent=9', null).indent, 0);
  assert.equal(negotiate('application/json; indent=-1', null).indent, 0);
});
