import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { after, before, test } from 'node:test';
import { sql } from 'kysely';
import { currentToken, hashToken, issueToken, sweepExpired } from '../../src/accounts/tokens.ts';
import type { Credentials } from '../helpers/server.ts';
import { type Bench, openBench } from '../instances/bench.ts';

type User = Credentials & { readonly id: number };

let bench: Bench;
before(async () => {
  bench = await openBench();
});
after(() => bench.close());

async function logIn(user: Credentials): Promise<string> {
  const { username, password } = user;
  const answer = await bench.request('POST', '/api/v1/auth-token/', { json: { username, password } });
  assert.equal(answer.status, 200, answer.text);
  return String(answer.json.token);
}

/** The status of a request with a token, and whose it is. */
async function owner(token: string): Promise<readonly [status: number, userLink: unknown]> {
  const answer = await bench.request('GET', '/api/v1/', { token });
  return [answer.status, answer.json.collection_links?.user];
}

const isValid = async (token: string): Promise<boolean> => (await owner(token))[0] === 200;

async function expire(user: User): Promise<void> {
  await sql`update api_token set expires_at = now() - interval '1 day' where account_id = ${user.id} and kind = 'api'`.execute(
    bench.database,
  );
}

async function jobToken(user: User): Promise<string> {
  const token = randomBytes(20).toString('hex');
  const token_hash = hashToken(token);
  await bench.database
    .insertInto('api_token')
    .values({ account_id: user.id, token_hash, kind: 'job', feed_id: 1 })
    .execute();
  return token;
}

test('log-ins at the same moment get one token, which is the same ever after', async () => {
  const user = await bench.user('same');
  const tokens = new Set(await Promise.all(Array.from({ length: 8 }, () => logIn(user))));
  assert.equal(tokens.size, 1);
  const [token = ''] = tokens;
  assert.match(token, /^[0-9a-f]{40}$/);
  assert.equal(await logIn(user), token);
  assert.equal(await isValid(token), true);
});

test('only hashes are in the database', async () => {
  const user = await bench.user('hash');
  const token = await logIn(user);
  const { json } = await bench.request('POST', '/api/v1/downloadtokens/', { as: user, json: {} });
  for (const secret of [token, String(json.token), user.password])
    for (const table of ['api_token', 'download_token', 'account', 'browser_session']) {
      const { rows } = await sql<{ found: boolean }>`
        select exists (select from ${sql.table(table)} t where position(${secret} in t::text) > 0
          or position(encode(convert_to(${secret}, 'UTF8'), 'hex') in t::text) > 0) as found`.execute(bench.database);
      assert.equal(rows[0]?.found, false, table);
    }
});

test('a token opens one account only, whoever else has one', async () => {
  const [one, other] = [await bench.user('first'), await bench.user('other')];
  const [ones, others] = [await logIn(one), await logIn(other)];
  assert.notEqual(ones, others);
  const link = (user: User): string => `${bench.url}/api/v1/users/${user.id}/`;
  assert.deepEqual(await owner(ones), [200, link(one)]);
  assert.deepEqual(await owner(others), [200, link(other)]);
});

test('nobody is ever given the token of another account, of another generation, or of a job', async () => {
  const { database, secrets } = bench.services;
  const [one, other] = [await bench.user('given'), await bench.user('stranger')];
  await logIn(other);
  const job = await jobToken(one);
  const { token_generation: generation } = await database
    .selectFrom('account')
    .select('token_generation')
    .where('id', '=', one.id)
    .executeTakeFirstOrThrow();
  assert.equal(await currentToken(database, secrets, one.id, generation), null, 'none was issued to this account');
  const token = await logIn(one);
  assert.notEqual(token, job);
  assert.equal(await currentToken(database, secrets, one.id, generation), token);
  assert.equal(await currentToken(database, secrets, one.id, generation + 1), null);
  await expire(one);
  assert.equal(await currentToken(database, secrets, one.id, generation), null, 'others that are valid do not count');
  const next = await database.transaction().execute((transaction) => issueToken(transaction, secrets, one.id, 1));
  assert.ok(![token, job].includes(next));
});

test('a revoked token never comes back', async () => {
  const user = await bench.user('revoked');
  const first = await logIn(user);
  assert.equal((await bench.request('POST', '/api/v1/auth-token/revoke/', { token: first })).status, 204);
  assert.equal(await isValid(first), false);
  const second = await logIn(user);
  assert.notEqual(second, first);
  assert.deepEqual([await isValid(first), await isValid(second)], [false, true]);
});

test('an expired token never comes back, not even after the sweep, and jobs go on', async () => {
  const user = await bench.user('expired');
  const job = await jobToken(user);
  const first = await logIn(user);
  await expire(user);
  assert.equal(await isValid(first), false);
  await sweepExpired(bench.database);
  const second = await logIn(user);
  assert.notEqual(second, first);
  assert.deepEqual([await isValid(first), await isValid(second), await isValid(job)], [false, true, true]);
});

test('the sweep forgets what has expired, and nothing else', async () => {
  const user = await bench.user('sweep');
  const [lost, kept] = [await jobToken(user), await jobToken(user)];
  await bench.request('POST', '/api/v1/downloadtokens/', { as: user, json: {} });
  await sql`update api_token set expires_at = now() - interval '1 day' where token_hash = ${hashToken(lost)}`.execute(
    bench.database,
  );
  await sweepExpired(bench.database);
  const left = await bench.database
    .selectFrom('api_token')
    .select('token_hash')
    .where('account_id', '=', user.id)
    .execute();
  assert.deepEqual(
    left.map(({ token_hash }) => token_hash.toString('hex')),
    [hashToken(kept).toString('hex')],
  );
  assert.equal((await bench.request('GET', '/api/v1/downloadtokens/', { as: user })).json.count, 1);
});

test('a new password ends sessions and all tokens but the one that set it', async () => {
  const user = await bench.user('changed');
  const spared = await logIn(user);
  const job = await jobToken(user);
  await sql`insert into browser_session (id_hash, account_id, expires_at)
    values (${hashToken('a session')}, ${user.id}, now() + interval '1 day')`.execute(bench.database);
  const path = `/api/v1/users/${user.id}/`;
  const json = { email: `${user.username}@example.org`, password: 'another-password' };
  assert.equal((await bench.request('PUT', path, { token: spared, json })).status, 200);
  assert.deepEqual([await isValid(spared), await isValid(job)], [true, false]);
  assert.equal((await bench.request('GET', path, { headers: { cookie: 'sessionid=a session' } })).status, 401);
  assert.equal((await bench.request('GET', path, { as: user })).status, 401, 'the old password');
  assert.equal(await logIn({ ...user, password: json.password }), spared);
  await bench.request('PUT', path, { as: bench.admin, json: { ...json, password: 'by-an-administrator' } });
  assert.equal(await isValid(spared), false, 'an administrator spares none');
});

test('an inactive account has no way in', async () => {
  const user = await bench.user('inactive');
  const token = await logIn(user);
  await bench.request('GET', '/api/v1/', { as: user });
  await bench.database.updateTable('account').set({ is_active: false }).where('id', '=', user.id).execute();
  assert.equal(await isValid(token), false);
  assert.equal(
    (await bench.request('GET', '/api/v1/', { as: user })).status,
    401,
    'also where the password is remembered',
  );
  const { username, password } = user;
  assert.equal((await bench.request('POST', '/api/v1/auth-token/', { json: { username, password } })).status, 400);
});

test('a download token works once, for downloads only, and is not shown again', async () => {
  const user = await bench.user('download');
  const { json } = await bench.request('POST', '/api/v1/downloadtokens/', { as: user, json: { token: 'chosen' } });
  const token = String(json.token);
  assert.notEqual(token, 'chosen');
  assert.doesNotMatch((await bench.request('GET', String(json.url), { as: user })).text, new RegExp(token));
  const files = await bench.request('GET', '/api/v1/userfiles/', { as: user });
  const file = String(files.json.results?.[0]?.file_resource);
  const url = `${file}?download_token=${token}`;
  assert.equal((await bench.request('GET', `/api/v1/userfiles/?download_token=${token}`)).status, 401);
  const refused = await bench.request('GET', `${file}?download_token=wrong`, { as: user });
  assert.equal(refused.status, 401, 'it alone decides');
  assert.equal((await bench.request('GET', url)).status, 200);
  const again = await bench.request('GET', url, { headers: { accept: 'application/vnd.collection+json' } });
  assert.equal(again.status, 401);
  assert.doesNotMatch(again.text, new RegExp(token));
  assert.equal((await bench.request('GET', String(json.url), { as: user })).status, 404);
});
