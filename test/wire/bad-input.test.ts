import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import fc from 'fast-check';
import type { InputFields } from '../../src/hypermedia/input.ts';
import { type Bench, openBench } from '../instances/bench.ts';
import { COLLECTION, checkRefusal, contentsOf, JSON_TYPE } from './refusals.ts';
import { type Address, addressesOf, pathOf } from './routes.ts';
import { type Reply, send } from './send.ts';
import { makePeople, makeWorld, type World } from './world.ts';

let bench: Bench;
let world: World;
let addresses: readonly Address[];
let authorization: Readonly<Record<'owner' | 'administrator', string>>;
before(async () => {
  bench = await openBench();
  const people = await makePeople(bench);
  world = await makeWorld(bench, people);
  addresses = addressesOf(bench.services);
  // a token stays valid when its owner's password is changed with it
  const tokenOf = async (json: { username: string; password: string }): Promise<string> =>
    `Token ${(await bench.request('POST', '/api/v1/auth-token/', { json })).json.token}`;
  authorization = { owner: await tokenOf(people.owner), administrator: await tokenOf(bench.admin) };
});
after(() => bench.close());

interface Writing {
  readonly method: 'POST' | 'PUT';
  readonly pattern: string;
  readonly fields: InputFields;
}

/** Every route that takes input, with what it declares. */
function writings(): readonly Writing[] {
  return addresses.flatMap(({ pattern, route, isSearch }): readonly Writing[] => {
    if (isSearch || route.kind === 'special') return [];
    if (route.kind === 'list') return route.create ? [{ method: 'POST', pattern, fields: route.create.fields }] : [];
    return route.change ? [{ method: 'PUT', pattern, fields: route.change.fields }] : [];
  });
}

function headersFor(pattern: string): Record<string, string> {
  const isOwners = !pattern.startsWith('admin:') && !pattern.startsWith('groups/');
  return { authorization: isOwners ? authorization.owner : authorization.administrator };
}

let count = 0;
/** What was there after the last request that was refused; null after one that changed something. */
let known: Readonly<Record<string, unknown>> | null = null;

/** Sends a body; when it is refused, nothing may have changed. @returns the names in the refusal, null for none */
async function write(
  { method, pattern }: Writing,
  type: string,
  body: string | Uint8Array,
): Promise<readonly string[] | null> {
  count += 1;
  const accept = count % 2 === 0 ? JSON_TYPE : COLLECTION;
  const before = known ?? (await contentsOf(bench));
  const headers = { ...headersFor(pattern), accept, 'content-type': type };
  const reply: Reply = await send(bench.url, method, pathOf(pattern, world), { headers, body });
  const shown = `${method} ${pattern} ${type} ${Buffer.from(body).toString('utf8').slice(0, 200)}`;
  known = null;
  if (reply.status < 300) return null;
  const names = checkRefusal(reply, shown);
  known = await contentsOf(bench);
  assert.deepEqual(known, before, `${shown} left something behind`);
  return names;
}

const LONG = 'x'.repeat(100_000);
const NO_TEXTS: readonly unknown[] = [null, [], {}, [['x']], { $ne: 1 }, { toString: 'x' }];
const NUMBERS: readonly unknown[] = [-1, 1.5, 1e308, 2 ** 53, 2 ** 31, -(2 ** 63)];
const TEXTS: readonly string[] = [
  ...['', ' ', '\0', 'a\0b', '\ud800', 'a\udfff', '\u0001\u001f', '\u202eabc', LONG, '😀'.repeat(2000)],
  ...[
    '..',
    '../..',
    '/etc/passwd',
    'home/..',
    'home/../x',
    'home/%2e%2e/x',
    'home/%00',
    '%2e%2e%2f',
    'home//x',
    'home/./x',
  ],
  ...['home/a,b', `home/${LONG}`, 'home/\u007f', "'; drop table account; --", '{{7*7}}', '<script>', '\r\nX-Y: z'],
];
const deep = (levels: number): string => `${'['.repeat(levels)}${']'.repeat(levels)}`;

test('a wrong value of any field is refused by name, or is no harm', async () => {
  for (const writing of writings()) {
    for (const name of Object.keys(writing.fields)) {
      for (const value of [...NO_TEXTS, ...NUMBERS, true, ...TEXTS]) {
        const right = JSON.parse(world.bodyFor(writing.pattern).text);
        await write(writing, JSON_TYPE, JSON.stringify({ ...right, [name]: value }));
        if (typeof value !== 'object' || value === null || Array.isArray(value)) continue;
        const data = [...Object.entries(right), [name, value]].map(([key, one]) => ({ name: key, value: one }));
        const names = await write(writing, COLLECTION, JSON.stringify({ template: { data } }));
        assert.ok(names?.includes(name) || names?.includes('non_field_errors'), `${writing.pattern} ${name}: ${names}`);
      }
    }
  }
});

const BODIES: readonly (readonly [type: string, body: string | Uint8Array])[] = [
  ...[
    '',
    'null',
    '[]',
    '"x"',
    '1',
    '{',
    '{"a":NaN}',
    '{"a":Infinity}',
    '{"a":1,}',
    '\ufeff{}',
    '{"a":1}{}',
    deep(200_000),
  ].map((body) => [JSON_TYPE, body] as const),
  [JSON_TYPE, Buffer.from([0x7b, 0xff, 0xfe, 0x7d])],
  [JSON_TYPE, '{"__proto__":{"isAdmin":true},"constructor":{"prototype":{"x":1}}}'],
  [JSON_TYPE, '{"name":"first","name":"second","name":{"third":1}}'],
  [`${JSON_TYPE}; charset=utf-16`, '{}'],
  ...[
    '{}',
    '[]',
    '{"template":[]}',
    '{"template":{"data":{}}}',
    '{"template":{"data":[1]}}',
    '{"template":{"data":[{"name":1}]}}',
  ].map((body) => [COLLECTION, body] as const),
  [COLLECTION, '{"template":{"data":[{"name":"__proto__","value":{"x":1}}]}}'],
  ...['%ZZ=%', '__proto__=x&constructor=y', '&&&=&==', '%00=%00', 'name=%ff%fe', 'name=a&name=b'].map(
    (body) => ['application/x-www-form-urlencoded', body] as const,
  ),
  ...[
    'text/plain',
    'application/xml',
    'application/merge-patch+json',
    'json',
    'a/b/c',
    ';;;',
    'text/plain, application/json',
  ].map((type) => [type, '{}'] as const),
];

test('a body of any form is understood or refused', async () => {
  for (const writing of writings()) for (const [type, body] of BODIES) await write(writing, type, body);
  assert.equal(Reflect.get({}, 'isAdmin'), undefined);
});

test('random members never break anything', async () => {
  const all = writings();
  const value = fc.oneof(fc.jsonValue(), fc.constantFrom(...TEXTS), fc.string({ unit: 'binary' }), fc.double());
  const request = fc.constantFrom(...all).chain((writing) => {
    const names = fc.constantFrom('__proto__', 'id', 'toString', ...Object.keys(writing.fields));
    return fc.record({ writing: fc.constant(writing), members: fc.array(fc.tuple(names, value), { maxLength: 6 }) });
  });
  await fc.assert(
    fc.asyncProperty(request, async ({ writing, members }) => {
      const text = members.map(([name, one]) => `${JSON.stringify(name)}:${JSON.stringify(one) ?? 'null'}`).join(',');
      await write(writing, JSON_TYPE, `{${text}}`);
    }),
    { numRuns: 300 },
  );
});

async function ask(path: string, pattern: string): Promise<Reply> {
  count += 1;
  const accept = count % 2 === 0 ? JSON_TYPE : COLLECTION;
  return send(bench.url, 'GET', path, { headers: { ...headersFor(pattern), accept } });
}

test('a filter takes any text: it filters, or the refusal names it', async () => {
  const values = [
    'x',
    '-1',
    '1.5',
    '1e5',
    '9'.repeat(400),
    '%00',
    '%ED%A0%80',
    '%ff',
    '%25_%5C',
    '2026-13-45',
    '9999-12-31T23:59:59.999999999%2B14:59',
    '0000-00-00',
    '[]',
    "'",
    '%2e%2e%2f',
  ];
  for (const { pattern, route, isSearch } of addresses) {
    if (!isSearch || route.kind !== 'list') continue;
    const names = [...(route.search?.filters ?? []).map(({ name }) => name), 'limit', 'offset', 'sort', '__proto__'];
    for (const name of names) {
      for (const value of values) {
        const query = `${encodeURIComponent(name)}=${value}`;
        const reply = await ask(`${pathOf(pattern, world)}?${query}`, pattern);
        if (reply.status !== 200) assert.deepEqual(checkRefusal(reply, `${pattern}?${query}`), [name]);
      }
    }
  }
});

test('random queries never break a search', async () => {
  const searches = addresses.filter(({ isSearch }) => isSearch);
  const request = fc.constantFrom(...searches).chain((address) => {
    const filters = address.route.kind === 'list' ? (address.route.search?.filters ?? []) : [];
    const names = fc.constantFrom('limit', 'offset', 'sort', ...filters.map(({ name }) => name));
    const value = fc.oneof(
      fc.string({ unit: 'grapheme' }),
      fc.integer().map(String),
      fc.date({ noInvalidDate: true }).map((date) => date.toISOString()),
    );
    return fc.record({ address: fc.constant(address), pairs: fc.array(fc.tuple(names, value), { maxLength: 8 }) });
  });
  await fc.assert(
    fc.asyncProperty(request, async ({ address, pairs }) => {
      const query = new URLSearchParams(pairs.map(([name, value]): [string, string] => [name, value.toWellFormed()]));
      const reply = await ask(`${pathOf(address.pattern, world)}?${query}`, address.pattern);
      if (reply.status !== 200) checkRefusal(reply, `${address.pattern}?${query}`);
    }),
    { numRuns: 400 },
  );
});

test('pages of any size and place are given, and any combination of filters is taken', async () => {
  const numbers = ['-1', '0', '1.5', 'x', '', '%00', '2147483648', '9223372036854775807', '9'.repeat(500)];
  for (const { pattern, route } of addresses.filter((address) => address.route.kind === 'list')) {
    for (const number of numbers) {
      const reply = await ask(`${pathOf(pattern, world)}?limit=${number}&offset=${number}&path=`, pattern);
      assert.equal(reply.status, 200, `${route.path} ${number}: ${reply.text.slice(0, 200)}`);
    }
  }
  const many = await ask(`/api/v1/plugins/search/?${'name=x&id=1&'.repeat(1000)}`, '');
  assert.equal(many.status, 200);
});

test('an id of any size is looked for, and what is no id is no path', async () => {
  for (const { pattern, route } of addresses) {
    if (!pattern.includes('{') || (route.kind === 'item' && route.singleton)) continue;
    for (const id of ['0', '2147483648', '9223372036854775808', '9'.repeat(300)]) {
      const path = pathOf(pattern, { idFor: () => 0 }).replace(/(?<=\/|note)0(?=\/)/, id);
      const reply = await ask(path, pattern);
      assert.equal(reply.status, 404, `${path}: ${reply.text.slice(0, 200)}`);
      checkRefusal(reply, path);
    }
    for (const id of ['-1', 'x', '1.5', '%31x', '%00', '..%2f', '%2e%2e', '１']) {
      const path = pathOf(pattern, { idFor: () => 0 }).replace(
        /(?<=\/|note)0(?=\/)/,
        encodeURI(id).replaceAll('%25', '%'),
      );
      const reply = await ask(path, pattern);
      assert.equal(reply.status, 404, `${path}: ${reply.text.slice(0, 200)}`);
    }
  }
});
