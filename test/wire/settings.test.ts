import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type Bench, openBench } from '../instances/bench.ts';
import { send } from './send.ts';

async function withServer(
  settings: Readonly<Record<string, string>>,
  work: (bench: Bench) => Promise<void>,
): Promise<void> {
  const bench = await openBench(settings);
  try {
    await work(bench);
  } finally {
    await bench.close();
  }
}

const FORWARDED = {
  'x-forwarded-for': '203.0.113.9',
  'x-forwarded-host': 'forwarded.example',
  'x-forwarded-proto': 'https',
};

/** The address that links begin with. */
async function origin({ url }: Bench, headers: Readonly<Record<string, string>>): Promise<string> {
  const { text } = await send(url, 'GET', '/api/v1/?format=json', { headers });
  return new URL(String(JSON.parse(text).collection_links.plugins)).origin;
}

test('forwarded headers of strangers are not believed', () =>
  withServer({ HYPERCUBE_TRUSTED_PROXIES: '198.51.100.0/24' }, async (bench) => {
    assert.equal(await origin(bench, { host: 'own.example', ...FORWARDED }), 'http://own.example');
    const user = await bench.user('guessed');
    const headers = { ...FORWARDED };
    const json = { username: user.username, password: 'wrong' };
    for (let index = 0; index < 20; index += 1) {
      headers['x-forwarded-for'] = `203.0.113.${index}`;
      await bench.request('POST', '/api/v1/auth-token/', { json, headers });
    }
    const { status } = await bench.request('POST', '/api/v1/auth-token/', { json, headers });
    assert.equal(status, 429, 'another forwarded address is no other guesser');
  }));

test('forwarded headers of trusted proxies are believed', () =>
  withServer({ HYPERCUBE_TRUSTED_PROXIES: '127.0.0.1' }, async (bench) => {
    assert.equal(await origin(bench, { host: 'own.example', ...FORWARDED }), 'https://forwarded.example');
    const { status } = await send(bench.url, 'GET', '/api/v1/', {
      headers: { ...FORWARDED, 'x-forwarded-host': 'a b<c>' },
    });
    assert.equal(status, 400);
    const page = await send(bench.url, 'GET', '/api/v1/auth/login/', { headers: FORWARDED });
    assert.match(String(page.headers['set-cookie']), /Secure/i);
  }));

test('links begin with the configured address, whatever the request says', () =>
  withServer({ HYPERCUBE_BASE_URL: 'https://chris.example.org' }, async (bench) => {
    assert.equal(await origin(bench, { host: 'evil.example', ...FORWARDED }), 'https://chris.example.org');
  }));

test('only allowed hosts are answered for', () =>
  withServer({ HYPERCUBE_ALLOWED_HOSTS: 'chris.example.org,.example.net' }, async ({ url }) => {
    for (const [host, status] of [
      ['chris.example.org', 200],
      ['CHRIS.example.org:8000', 200],
      ['a.example.net', 200],
      ['example.net', 200],
      ['evilexample.net', 400],
      ['chris.example.org.evil.example', 400],
      ['x.chris.example.org', 400],
      ['127.0.0.1', 400],
      ['chris.example.org@evil.example', 400],
    ] as const)
      assert.equal((await send(url, 'GET', '/api/v1/', { headers: { host } })).status, status, host);
    const { status, headers } = await send(url, 'GET', '/api/v1/', { headers: { host: 'evil.example' } });
    assert.deepEqual([status, headers['x-content-type-options']], [400, 'nosniff']);
    assert.equal((await send(url, 'GET', '/healthz')).status, 200);
  }));

test('where sign-up is closed nobody signs up', () =>
  withServer({ HYPERCUBE_SIGN_UP: 'false' }, async (bench) => {
    const json = { username: 'somebody', password: 'a-password', email: 'somebody@example.org' };
    for (const as of [undefined, bench.admin]) {
      const answer = await bench.request('POST', '/api/v1/users/', { json, ...(as && { as }) });
      assert.deepEqual([answer.status, answer.headers.get('allow')], [405, 'GET']);
    }
    const shown = await bench.request('GET', '/api/v1/users/');
    assert.deepEqual([shown.status, shown.headers.get('allow'), 'template' in shown.json], [200, 'GET', false]);
  }));

test('tokens end after the configured lifetime', () =>
  withServer({ HYPERCUBE_TOKEN_LIFETIME_DAYS: '2' }, async (bench) => {
    const { username, password } = bench.admin;
    const { json } = await bench.request('POST', '/api/v1/auth-token/', { json: { username, password } });
    const age = (days: number) =>
      bench.database
        .updateTable('api_token')
        .set((token) => ({
          expires_at: token.fn<string>('make_timestamptz', [
            token.val(2000 + days),
            token.val(1),
            token.val(1),
            token.val(0),
            token.val(0),
            token.val(0),
          ]),
        }))
        .execute();
    const { expires_at } = await bench.database.selectFrom('api_token').select('expires_at').executeTakeFirstOrThrow();
    assert.ok(expires_at !== null);
    const status = async () =>
      (await bench.request('GET', '/api/v1/downloadtokens/', { token: String(json.token) })).status;
    assert.equal(await status(), 200);
    await age(0);
    assert.equal(await status(), 401);
  }));
