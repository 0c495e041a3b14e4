import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { InvalidFields } from '../../src/hypermedia/errors.ts';
import { likePattern, parseDate, parseInteger } from '../../src/hypermedia/filters.ts';

const complains = (name: string) => (error: unknown) => error instanceof InvalidFields && name in error.fields;

test('text where a number belongs is refused under the name of the filter', () => {
  for (const text of ['abc', '1e3', '0x10', '--1', '1.2.3', 'NaN', 'Infinity'])
    assert.throws(() => parseInteger(text, 'id'), complains('id'), text);
});

test('a decimal equals an integer only if it is one', () => {
  assert.equal(parseInteger('7', 'id'), '7');
  assert.equal(parseInteger('7.0', 'id'), '7');
  assert.equal(parseInteger('+7', 'id'), '7');
  assert.equal(parseInteger('7.5', 'id'), null);
});

test('a number that no id can have matches nothing', () => {
  assert.equal(parseInteger('99999999999999999999999', 'id'), null);
});

test('any text is a number or a complaint, never a failure', () => {
  fc.assert(
    fc.property(fc.string(), (text) => {
      try {
        const value = parseInteger(text, 'id');
        assert.ok(value === null || /^-?\d+$/.test(value));
      } catch (error) {
        assert.ok(complains('id')(error));
      }
    }),
  );
});

test('dates that are none are refused under the name of the filter', () => {
  for (const text of [
    'yesterday',
    '2020-13-45',
    '2020-02-30',
    '2020-01-01T25:00:00',
    '2020-01-01T10:61:00',
    '20-01-01',
    '2020-01-01T10:00:00+99',
  ]) {
    assert.throws(() => parseDate(text, 'min_creation_date'), complains('min_creation_date'), text);
  }
});

test('ISO 8601 dates and date-times are understood', () => {
  for (const text of [
    '2000-01-01',
    '2000-01-01T00:00:00',
    '2000-01-01T00:00:00Z',
    '2000-01-01T00:00:00.123456-05:00',
    '2000-01-01 10:00',
  ]) {
    assert.equal(parseDate(text, 'since'), text);
  }
});

test('the signs of a pattern stand for themselves', () => {
  assert.equal(likePattern('50%_a\\b'), '50\\%\\_a\\\\b');
});
