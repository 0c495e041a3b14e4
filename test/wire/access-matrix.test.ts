import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { type Bench, openBench } from '../instances/bench.ts';
import { type Address, addressesOf, pathOf } from './routes.ts';
import { send } from './send.ts';
import { CALLERS, type CallerName, makePeople, makeWorld, type People, type World } from './world.ts';

/*
 * Who gets what at every route. A cell has one letter for each caller, in this order: anonymous, stranger, member of the shared
 * feed, owner, staff that is no administrator, administrator, job of another feed, job of this feed, the owner's session without
 * CSRF proof. HEAD is as GET; "others" are all methods that the route does not offer.
 *
 *   o 200   c 201   a 202   n 204   r 302   0 400   1 401   3 403   5 405
 *
 * Writing requests have the bodies of `world.ts`; where a 400 stands, the caller got past the door, and the body is at fault.
 */
const TABLE = `
route                                                GET       POST      PUT       DELETE    OPTIONS   others
users/                                               oooooo33o 000000333 -         -         nnnnnn33n 555555335
users/{id}/                                          1ooooo33o -         133030333 -         1nnnnn33n 155555335
users/{id}/groups/                                   1ooooo33o -         -         -         1nnnnn33n 155555335
groups/                                              1ooooo33o 1333cc333 -         -         1nnnnn33n 133355333
groups/search/                                       1ooooo33o -         -         -         1nnnnn33n 133355333
groups/{id}/                                         1ooooo33o -         -         1333nn333 1nnnnn33n 133355333
groups/{id}/users/                                   1ooooo33o 1333cc333 -         -         1nnnnn33n 133355333
groups/{id}/users/search/                            1ooooo33o -         -         -         1nnnnn33n 133355333
groups/users/{id}/                                   1ooooo33o -         -         1333nn333 1nnnnn33n 133355333
downloadtokens/                                      1ooooo33o 1ccccc333 -         -         1nnnnn33n 155555335
downloadtokens/search/                               1ooooo33o -         -         -         1nnnnn33n 155555335
downloadtokens/{id}/                                 133o3o33o -         -         -         1nnnnn33n 155555335
chrisinstance/{id}/                                  1ooooo33o -         -         -         1nnnnn33n 155555335
(root)                                               ooooooooo -         -         -         nnnnnnnnn 555555555
search/                                              ooooooooo -         -         -         nnnnnnnnn 555555555
publicfeeds/                                         ooooooooo -         -         -         nnnnnnnnn 555555555
publicfeeds/search/                                  ooooooooo -         -         -         nnnnnnnnn 555555555
{id}/                                                13oo3o3oo -         13oo3o3o3 133a3a333 nnnnnnnnn 555555555
note{id}/                                            13oo3o3oo -         13oo3o3o3 -         nnnnnnnnn 555555555
{id}/plugininstances/                                13oo3o3oo -         -         -         nnnnnnnnn 555555555
files/                                               1oooooooo -         -         -         1nnnnnnnn 155555555
files/search/                                        1oooooooo -         -         -         1nnnnnnnn 155555555
files/{id}/                                          13oo3o3oo -         -         -         nnnnnnnnn 555555555
files/{id}/*                                         13oo3o3oo -         -         -         nnnnnnnnn 555555555
{id}/files/                                          13oo3o3oo -         -         -         nnnnnnnnn 555555555
plugins/instances/{id}/files/                        13oo3o3oo -         -         -         nnnnnnnnn 555555555
plugins/{id}/instances/                              1oooooooo 10cc00003 -         -         1nnnnnnnn 155555555
plugins/instances/                                   ooooooooo -         -         -         nnnnnnnnn 555555555
plugins/instances/search/                            ooooooooo -         -         -         nnnnnnnnn 555555555
plugins/instances/{id}/                              13oo3o3oo -         133o3o3o3 133a3a3a3 nnnnnnnnn 555555555
plugins/instances/{id}/descendants/                  13oo3o3oo -         -         -         nnnnnnnnn 555555555
plugins/instances/{id}/parameters/                   13oo3o3oo -         -         -         nnnnnnnnn 555555555
plugins/unextpath-parameter/{id}/                    13oo3o3oo -         -         -         nnnnnnnnn 555555555
plugins/path-parameter/{id}/                         13oo3o3oo -         -         -         nnnnnnnnn 555555555
plugins/string-parameter/{id}/                       13oo3o3oo -         -         -         nnnnnnnnn 555555555
plugins/integer-parameter/{id}/                      13oo3o3oo -         -         -         nnnnnnnnn 555555555
plugins/float-parameter/{id}/                        13oo3o3oo -         -         -         nnnnnnnnn 555555555
plugins/boolean-parameter/{id}/                      13oo3o3oo -         -         -         nnnnnnnnn 555555555
plugins/instances/{id}/splits/                       13oo3o3oo 133c3c3c3 -         -         nnnnnnnnn 555555555
plugins/instances/splits/{id}/                       13oo3o3oo -         -         -         nnnnnnnnn 555555555
computeresources/                                    oooooo33o -         -         -         nnnnnn33n 555555335
computeresources/search/                             oooooo33o -         -         -         nnnnnn33n 555555335
computeresources/{id}/                               oooooo33o -         -         -         nnnnnn33n 555555335
plugins/metas/                                       oooooo33o -         -         -         nnnnnn33n 555555335
plugins/metas/search/                                oooooo33o -         -         -         nnnnnn33n 555555335
plugins/metas/{id}/                                  oooooo33o -         -         -         nnnnnn33n 555555335
plugins/metas/{id}/plugins/                          oooooo33o -         -         -         nnnnnn33n 555555335
plugins/                                             oooooo33o -         -         -         nnnnnn33n 555555335
plugins/search/                                      oooooo33o -         -         -         nnnnnn33n 555555335
plugins/{id}/                                        oooooo33o -         -         -         nnnnnn33n 555555335
plugins/{id}/parameters/                             oooooo33o -         -         -         nnnnnn33n 555555335
plugins/parameters/{id}/                             oooooo33o -         -         -         nnnnnn33n 555555335
plugins/{id}/computeresources/                       oooooo33o -         -         -         nnnnnn33n 555555335
admin:                                               1333oo333 133300333 -         -         1333nn333 133355333
admin:{id}/                                          1333oo333 -         133300333 1333nn333 1333nn333 133355333
admin:computeresources/                              1333oo333 133300333 -         -         1333nn333 133355333
admin:computeresources/{id}/                         1333oo333 -         133300333 1333nn333 1333nn333 133355333
filebrowser/                                         oooooo33o 100c00333 -         -         nnnnnn33n 155555335
filebrowser/search/                                  oooooo33o -         -         -         nnnnnn33n 155555335
filebrowser/{id}/                                    13oo3o33o -         133030333 133a3a333 nnnnnn33n 555555335
filebrowser/{id}/children/                           13oo3o33o -         -         -         nnnnnn33n 555555335
filebrowser/{id}/files/                              13oo3o33o -         -         -         nnnnnn33n 555555335
filebrowser/{id}/linkfiles/                          13oo3o33o -         -         -         nnnnnn33n 555555335
filebrowser/files/{id}/                              13oo3o33o -         133030333 133n3n333 nnnnnn33n 555555335
filebrowser/files/{id}/*                             13oo3o33o -         -         -         nnnnnn33n 555555335
filebrowser/linkfiles/{id}/                          13oo3o33o -         133030333 133n3n333 nnnnnn33n 555555335
filebrowser/linkfiles/{id}/*                         13oo3o33o -         -         -         nnnnnn33n 555555335
filebrowser/{id}/grouppermissions/                   13oo3o33o 133c3c333 -         -         1nnnnn33n 155555335
filebrowser/{id}/grouppermissions/search/            13oo3o33o -         -         -         1nnnnn33n 155555335
filebrowser/grouppermissions/{id}/                   13oo3o33o -         133030333 133n3n333 1nnnnn33n 155555335
filebrowser/{id}/userpermissions/                    13oo3o33o 133c3c333 -         -         1nnnnn33n 155555335
filebrowser/{id}/userpermissions/search/             13oo3o33o -         -         -         1nnnnn33n 155555335
filebrowser/userpermissions/{id}/                    13oo3o33o -         133030333 133n3n333 1nnnnn33n 155555335
filebrowser/files/{id}/grouppermissions/             13oo3o33o 133c3c333 -         -         1nnnnn33n 155555335
filebrowser/files/{id}/grouppermissions/search/      13oo3o33o -         -         -         1nnnnn33n 155555335
filebrowser/files/grouppermissions/{id}/             13oo3o33o -         133030333 133n3n333 1nnnnn33n 155555335
filebrowser/files/{id}/userpermissions/              13oo3o33o 133c3c333 -         -         1nnnnn33n 155555335
filebrowser/files/{id}/userpermissions/search/       13oo3o33o -         -         -         1nnnnn33n 155555335
filebrowser/files/userpermissions/{id}/              13oo3o33o -         133030333 133n3n333 1nnnnn33n 155555335
filebrowser/linkfiles/{id}/grouppermissions/         13oo3o33o 133c3c333 -         -         1nnnnn33n 155555335
filebrowser/linkfiles/{id}/grouppermissions/search/  13oo3o33o -         -         -         1nnnnn33n 155555335
filebrowser/linkfiles/grouppermissions/{id}/         13oo3o33o -         133030333 133n3n333 1nnnnn33n 155555335
filebrowser/linkfiles/{id}/userpermissions/          13oo3o33o 133c3c333 -         -         1nnnnn33n 155555335
filebrowser/linkfiles/{id}/userpermissions/search/   13oo3o33o -         -         -         1nnnnn33n 155555335
filebrowser/linkfiles/userpermissions/{id}/          13oo3o33o -         133030333 133n3n333 1nnnnn33n 155555335
userfiles/                                           1ooooo33o 100000333 -         -         1nnnnn33n 155555335
userfiles/search/                                    1ooooo33o -         -         -         1nnnnn33n 155555335
userfiles/{id}/                                      133o3o33o -         133030333 133n3n333 nnnnnn33n 555555335
userfiles/{id}/*                                     133o3o33o -         -         -         nnnnnn33n 555555335
auth-token/                                          -         000000333 -         -         oooooo33o 555555335
auth-token/revoke/                                   -         1nnnnn333 -         -         1nnnnn33n 155555335
/api/v1/auth/login/                                  oooooo33o 333333333 -         -         nnnnnn33n 555555335
/api/v1/auth/logout/                                 -         rrrrrr333 -         -         nnnnnn33n 555555335
/svc-admin/                                          rrrrrr33r -         -         -         nnnnnn33n 555555335
/svc-admin/login/                                    oooooo33o 333333333 -         -         nnnnnn33n 555555335
/svc-admin/logout/                                   -         rrrrrr333 -         -         nnnnnn33n 555555335
/chris-admin/                                        rrrrrr33r -         -         -         nnnnnn33n 555555335
/chris-admin/login/                                  oooooo33o 333333333 -         -         nnnnnn33n 555555335
/chris-admin/logout/                                 -         rrrrrr333 -         -         nnnnnn33n 555555335
/schema/                                             oooooo33o -         -         -         oooooo33o 555555335
/schema/swagger-ui/                                  oooooo33o -         -         -         nnnnnn33n 555555335
/schema/swagger-ui/start.js                          oooooo33o -         -         -         nnnnnn33n 555555335
/schema/swagger-ui/swagger-ui.css                    oooooo33o -         -         -         nnnnnn33n 555555335
/schema/swagger-ui/swagger-ui-bundle.js              oooooo33o -         -         -         nnnnnn33n 555555335
/schema/swagger-ui/favicon-32x32.png                 oooooo33o -         -         -         nnnnnn33n 555555335
/schema/redoc/                                       oooooo33o -         -         -         nnnnnn33n 555555335
`;

const STATUSES: Readonly<Record<string, number>> = {
  ...{ o: 200, c: 201, a: 202, n: 204, r: 302 },
  ...{ 0: 400, 1: 401, 3: 403, 5: 405 },
};

const COLUMNS = ['GET', 'POST', 'PUT', 'DELETE', 'OPTIONS', 'others'] as const;
type Expected = ReadonlyMap<string, Readonly<Record<(typeof COLUMNS)[number], string>>>;

function readTable(): Expected {
  const [, ...lines] = TABLE.trim().split('\n');
  return new Map(
    lines.map((line) => {
      const [pattern = '', GET = '', POST = '', PUT = '', DELETE = '', OPTIONS = '', others = ''] = line.split(/ +/);
      return [pattern === '(root)' ? '' : pattern, { GET, POST, PUT, DELETE, OPTIONS, others }];
    }),
  );
}

const READING = ['GET', 'HEAD', 'OPTIONS'];
const UNOFFERED = ['GET', 'HEAD', 'POST', 'PUT', 'DELETE', 'PATCH', 'TRACE', 'PROPFIND', 'QUERY'];
const expected = readTable();

let bench: Bench;
let people: People;
let world: World;
let addresses: readonly Address[];
before(async () => {
  bench = await openBench();
  people = await makePeople(bench);
  world = await makeWorld(bench, people);
  addresses = addressesOf(bench.services);
});
after(() => bench.close());

async function ask(method: string, pattern: string, caller: CallerName): Promise<number> {
  const writes = !READING.includes(method);
  const { type, text } = world.bodyFor(pattern);
  const { status } = await send(bench.url, method, pathOf(pattern, world), {
    headers: { accept: 'application/json', ...(writes && { 'content-type': type }), ...world.callers[caller] },
    ...(writes && method !== 'TRACE' && { body: text }),
  });
  // what one caller has made or removed is not what the next one finds
  if ((method === 'POST' || method === 'DELETE') && status < 300) world = await makeWorld(bench, people);
  return status;
}

async function checkCell(method: string, pattern: string, cell: string): Promise<void> {
  assert.equal(cell.length, CALLERS.length, `the table's ${method} ${pattern}`);
  for (const [index, caller] of CALLERS.entries()) {
    const status = await ask(method, pattern, caller);
    assert.equal(status, STATUSES[cell[index] ?? ''], `${method} ${pattern} by ${caller}`);
  }
}

/** The cell of a method; whoever may read a route that has no GET is told 405. */
function cellOf(method: string, { pattern, offered }: Address): string {
  const row = expected.get(pattern);
  assert.ok(row, `the table has no line for ${pattern}`);
  const found = offered.find((one) => one === (method === 'HEAD' ? 'GET' : method));
  if (found !== undefined) return row[found];
  return READING.includes(method) ? row.OPTIONS.replaceAll(/[on]/g, '5') : row.others;
}

test('every route is in the table, and every line of the table is a route', () => {
  assert.deepEqual([...expected.keys()].sort(), addresses.map(({ pattern }) => pattern).sort());
});

test('every method of every route answers each kind of caller as the table says', async () => {
  for (const address of addresses) {
    const { pattern, offered } = address;
    await checkCell('OPTIONS', pattern, expected.get(pattern)?.OPTIONS ?? '');
    for (const method of new Set([...offered, ...UNOFFERED])) {
      await checkCell(method, pattern, cellOf(method, address));
    }
  }
});

test('the administration answers alike under both of its prefixes', async () => {
  for (const { pattern } of addresses.filter(({ route }) => route.area === 'admin')) {
    const path = pathOf(pattern, world).replace('/svc-admin/', '/chris-admin/');
    for (const [index, caller] of CALLERS.entries()) {
      const { status } = await send(bench.url, 'GET', path, { headers: { ...world.callers[caller] } });
      assert.equal(status, STATUSES[expected.get(pattern)?.GET[index] ?? ''], `${path} by ${caller}`);
    }
  }
});

test('a session needs its proof whatever type the body claims to have', async () => {
  const headers = world.callers['session without proof'];
  for (const { pattern, offered } of addresses) {
    for (const method of offered.filter((one) => one !== 'GET')) {
      for (const type of ['application/x-www-form-urlencoded', 'multipart/form-data; boundary=x', 'text/plain']) {
        const { status } = await send(bench.url, method, pathOf(pattern, world), {
          headers: { ...headers, 'content-type': type },
          body: type.startsWith('multipart') ? '--x--\r\n' : 'public=false',
        });
        assert.equal(status, 403, `${method} ${pattern} as ${type}`);
      }
    }
  }
});
