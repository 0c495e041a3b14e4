import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { pageLinks, readPage } from '../../src/hypermedia/paging.ts';

const read = (query: string) => readPage(new URLSearchParams(query), 1_000_000);
const ADDRESS = 'http://host/api/v1/groups/';

test('a limit that is none counts as the default', () => {
  for (const limit of ['0', '-1', 'abc', '1.5', '', '١']) assert.equal(read(`limit=${limit}`).limit, 10, limit);
});

test('a limit beyond the largest page gives the largest page', () => {
  assert.equal(read('limit=99999999999999999999999999').limit, 1_000_000);
});

test('an offset that is none counts as 0, a huge one stays a safe number', () => {
  for (const offset of ['-1', 'abc', '']) assert.equal(read(`offset=${offset}`).offset, 0, offset);
  assert.equal(read(`offset=${'9'.repeat(40)}`).offset, Number.MAX_SAFE_INTEGER);
});

test('the last of repeated parameters counts', () => {
  assert.equal(read('limit=2&limit=3').limit, 3);
});

test('links keep the other parameters, sorted by name, but no secret', () => {
  const query = new URLSearchParams('zoo=1&limit=2&alpha=b&download_token=secret');
  const { next, previous } = pageLinks(ADDRESS, query, { limit: 2, offset: 2 }, 10);
  assert.equal(next, `${ADDRESS}?alpha=b&limit=2&offset=4&zoo=1`);
  assert.equal(previous, `${ADDRESS}?alpha=b&limit=2&zoo=1`);
});

test('walking by next visits every member once', () => {
  fc.assert(
    fc.property(fc.integer({ min: 0, max: 200 }), fc.integer({ min: 1, max: 50 }), (total, limit) => {
      const visited: number[] = [];
      let address: string | null = `${ADDRESS}?limit=${limit}`;
      while (address !== null) {
        const query: URLSearchParams = new URL(address).searchParams;
        const page = readPage(query, 1000);
        for (let member = page.offset; member < Math.min(page.offset + page.limit, total); member += 1)
          visited.push(member);
        address = pageLinks(ADDRESS, query, page, total).next;
      }
      assert.deepEqual(
        visited,
        Array.from({ length: total }, (_, index) => index),
      );
    }),
  );
});
