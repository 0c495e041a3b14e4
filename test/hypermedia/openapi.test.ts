import assert from 'node:assert/strict';
import { test } from 'node:test';
import { sql } from 'kysely';
import { anyone } from '../../src/access/caller.ts';
import { contains, equalNumber, oneOf } from '../../src/hypermedia/filters.ts';
import { integer, text } from '../../src/hypermedia/input.ts';
import { describeApi } from '../../src/hypermedia/openapi.ts';
import { data, link, resource } from '../../src/hypermedia/resource.ts';
import { change, creation, item, list, PUBLIC, type Route, SIGNED_IN, special } from '../../src/hypermedia/routes.ts';

const shelf = resource({
  name: 'shelf',
  component: 'Shelf',
  from: sql`shelf s`,
  alias: 's',
  url: 'shelves/{}/',
  read: anyone,
  fields: [
    data('title', 'string', { maxLength: 20 }),
    data('size', 'int64'),
    data('kind', 'string', { enumeration: 'ShelfKind' }),
    data('mood', 'string', { enumeration: 'ShelfKind', blank: true, readOnly: false }),
    data('home', 'uri', { maxLength: 30, blank: true, nullable: true }),
    data('summary', 'any'),
    data('removed', 'date-time', { absentWhenNull: true }),
    link('books', 'shelves/{}/books/'),
    link('owners', 'users/{}/', { many: true }),
  ],
});

const OPTIONS = { title: 'Library', adminPrefix: '/admin/', enumerations: { ShelfKind: ['small', 'large'] } };
const order = sql`s.id`;

const shelves: readonly Route[] = [
  list({
    path: 'old-shelves/',
    of: shelf,
    access: PUBLIC,
    order,
    search: {
      filters: [
        equalNumber('id', sql`s.id`),
        equalNumber('room_id', sql`s.room_id`),
        equalNumber('min_id', sql`s.id`),
        contains('title', sql`s.title`),
        oneOf('kind', sql`s.kind`, ['small', 'large']),
      ],
    },
    create: creation({
      input: { title: text({ max: 20, required: true }), secret: text({ max: 9 }), level: integer({ minimum: 1 }) },
      run: async () => 1,
    }),
  }),
  item({
    path: 'old-shelves/{id}/',
    of: shelf,
    access: SIGNED_IN,
    change: change({ rule: anyone, input: { title: text({ max: 20 }) }, run: async () => undefined }),
    remove: { rule: anyone, inBackground: true, run: async () => undefined },
  }),
];

function download(path: string): Route {
  const answer = { types: ['*/*'], schema: { type: 'string', format: 'binary' } } as const;
  const handle = async (): Promise<null> => null;
  const methods = { GET: { summary: 'Download', answer, handle } };
  return special({ path, access: SIGNED_IN, representation: 'its own', downloadToken: true, methods });
}

test('two operations of one id are refused, because a client generated from them would lose one', () => {
  const other = list({ path: 'old_shelves/', of: shelf, access: PUBLIC, order });
  assert.throws(() => describeApi([...shelves, other], OPTIONS), /old_shelves_list stands for GET .*old-shelves\/ and/);
});

test('an enumeration without declared values is refused by its name', () => {
  assert.throws(() => describeApi(shelves, { ...OPTIONS, enumerations: {} }), /ShelfKind/);
});

test('operation ids are the words of the path and the verb', () => {
  const ids = (routes: readonly Route[]): readonly string[] =>
    Object.values(describeApi(routes, OPTIONS).paths).flatMap((path) =>
      Object.values(path).map((operation) => operation.operationId),
    );
  assert.deepEqual(ids(shelves), [
    'old_shelves_list',
    'old_shelves_create',
    'old_shelves_search_list',
    'old_shelves_retrieve',
    'old_shelves_update',
    'old_shelves_destroy',
  ]);
  assert.deepEqual(ids([list({ path: '', of: shelf, access: PUBLIC, order })]), ['root_list']);
  assert.deepEqual(ids([list({ path: 'note{id}/', of: shelf, access: PUBLIC, order })]), ['note_list']);
  assert.deepEqual(ids([download('files/{id}/*')]), ['files_._retrieve']);
  const declared = list({ path: 'x/', of: shelf, access: PUBLIC, order, operations: { GET: 'all_shelves_list' } });
  assert.deepEqual(ids([declared]), ['all_shelves_list']);
});

test('the administration has ids of its own, the same under every prefix', () => {
  const route = item({ path: 'computeresources/{id}/', area: 'admin', of: shelf, access: SIGNED_IN });
  const { paths } = describeApi([route], OPTIONS);
  assert.equal(
    paths['/admin/api/v1/computeresources/{id}/']?.get?.operationId,
    'svcAdminApiV1ComputeresourcesRetrieve',
  );
});

test('one component serves for bodies and answers', () => {
  const { Shelf, ShelfKind, BlankEnum, PaginatedShelfList } = describeApi(shelves, OPTIONS).components.schemas;
  const kind = { $ref: '#/components/schemas/ShelfKind' };
  const uri = { type: 'string', format: 'uri' };
  assert.deepEqual(Shelf?.properties, {
    url: { ...uri, readOnly: true },
    id: { type: 'integer', readOnly: true },
    title: { type: 'string', maxLength: 20 },
    size: { type: 'integer', format: 'int64', readOnly: true },
    kind: { allOf: [kind], readOnly: true },
    mood: { oneOf: [kind, { $ref: '#/components/schemas/BlankEnum' }] },
    home: {
      oneOf: [
        { ...uri, maxLength: 30 },
        { type: 'string', maxLength: 0 },
      ],
      nullable: true,
      readOnly: true,
    },
    summary: { readOnly: true },
    removed: { type: 'string', format: 'date-time', readOnly: true },
    books: { ...uri, readOnly: true },
    owners: { type: 'array', items: uri, readOnly: true },
    secret: { type: 'string', maxLength: 9, writeOnly: true },
    level: { type: 'integer', minimum: 1, maximum: 2147483647, writeOnly: true },
  });
  assert.deepEqual(Shelf?.required, ['books', 'home', 'id', 'kind', 'owners', 'size', 'summary', 'url']);
  assert.deepEqual(ShelfKind, { type: 'string', enum: ['small', 'large'] });
  assert.deepEqual(BlankEnum, { enum: [''] });
  assert.deepEqual(PaginatedShelfList?.required, ['count', 'results']);
});

test('a member is required where no body can do without it, or where there are no bodies and every answer has it', () => {
  const required = (routes: readonly Route[]): readonly string[] => {
    const names = describeApi(routes, OPTIONS).components.schemas.Shelf?.required ?? [];
    return names.filter((name) => ['title', 'mood', 'removed'].includes(name));
  };
  const [made] = shelves;
  assert.ok(made);
  assert.deepEqual(required([made]), ['title']);
  assert.deepEqual(required(shelves), []);
  assert.deepEqual(required([item({ path: 'old-shelves/{id}/', of: shelf, access: PUBLIC })]), ['mood', 'title']);
});

test('filters become parameters; ids of related objects are texts, as generated clients pass them', () => {
  const search = describeApi(shelves, OPTIONS).paths['/api/v1/old-shelves/search/']?.get;
  assert.deepEqual(
    search?.parameters.map(({ name, schema }) => [name, schema]),
    [
      ['id', { type: 'integer' }],
      ['kind', { type: 'string', enum: ['large', 'small'] }],
      ['limit', { type: 'integer' }],
      ['min_id', { type: 'integer' }],
      ['offset', { type: 'integer' }],
      ['room_id', { type: 'string' }],
      ['title', { type: 'string' }],
    ],
  );
});

test('a removal in the background says 202, and the 204 that generated clients know', () => {
  const removal = describeApi(shelves, OPTIONS).paths['/api/v1/old-shelves/{id}/']?.delete;
  assert.deepEqual(Object.keys(removal?.responses ?? {}), ['202', '204', '401', '403', '404']);
});

test('a public route may be called without credentials, a download with its token', () => {
  const { paths } = describeApi([...shelves, download('files/{id}/*')], OPTIONS);
  assert.deepEqual(paths['/api/v1/old-shelves/']?.get?.security.at(-1), {});
  assert.deepEqual(paths['/api/v1/old-shelves/{id}/']?.get?.security.at(-1), { cookieAuth: [] });
  const file = paths['/api/v1/files/{id}/.']?.get;
  assert.deepEqual(file?.security[0], { DownloadTokenInQueryString: [] });
  assert.deepEqual(file?.parameters[0]?.schema, { type: 'string', pattern: '^[0-9]+$' });
});
