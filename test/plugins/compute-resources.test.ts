import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import { type Answer, clientOf, type Request } from '../helpers/client.ts';
import { freePort, startServer, type TestServer } from '../helpers/server.ts';
import { PASSWORD, type ScriptedService, servePfcon } from './services.ts';

const LIST = '/svc-admin/api/v1/computeresources/';
const CONTRACT_FIELDS = [
  'name',
  'description',
  'compute_url',
  'compute_auth_url',
  'compute_user',
  'compute_password',
  'compute_auth_token',
  'max_job_exec_seconds',
];

describe('compute resources', () => {
  let server: TestServer;
  let request: Request;
  let pfcon: ScriptedService;

  before(async () => {
    server = await startServer();
    request = clientOf(server);
    pfcon = await servePfcon();
  });
  after(async () => {
    await pfcon?.close();
    await server?.close();
  });

  const good = (name: string, more: object = {}) => ({
    name,
    compute_url: `${pfcon.root}/api/v1/`,
    compute_user: 'pfcon',
    compute_password: PASSWORD,
    ...more,
  });
  const create = (json: object) => request('POST', LIST, { as: server.admin, json });
  const change = (id: unknown, json: object) => request('PUT', `${LIST}${id}/`, { as: server.admin, json });
  const complaints = ({ status, json }: Answer) => [status, ...Object.keys(json ?? {}).sort()];

  it('are kept from everybody but staff in the administration API', async () => {
    assert.equal((await request('GET', LIST)).status, 401);
    assert.equal((await request('POST', LIST, { json: good('no') })).status, 401);
    await request('POST', '/api/v1/users/', {
      json: { username: 'alice', password: 'alice1234', email: 'alice@example.org' },
    });
    const alice = { username: 'alice', password: 'alice1234' };
    assert.equal((await request('GET', LIST, { as: alice })).status, 403);
    assert.equal((await request('POST', LIST, { as: alice, json: good('no') })).status, 403);
  });

  it('are refused with every field that is wrong', async () => {
    assert.deepEqual(complaints(await create({})), [400, 'compute_password', 'compute_url', 'compute_user', 'name']);
    const wrong = {
      name: 'builtin',
      compute_url: 'nope',
      compute_user: 'x',
      compute_password: 'x',
      max_job_exec_seconds: 'x',
    };
    assert.deepEqual(complaints(await create(wrong)), [400, ...Object.keys(wrong).sort()]);
    for (const compute_url of [
      'ftp://example.org/',
      'file:///etc/passwd',
      'gopher://example.org/',
      'http://',
      'javascript:1',
    ]) {
      assert.deepEqual(complaints(await create(good('no', { compute_url }))), [400, 'compute_url'], compute_url);
    }
    assert.deepEqual(complaints(await create(good('no', { compute_password: '' }))), [400, 'compute_password']);
    assert.deepEqual(complaints(await create(good('no', { compute_user: '' }))), [400, 'compute_user']);
  });

  it('are refused when the service refuses', async () => {
    assert.deepEqual(complaints(await create(good('no', { compute_password: 'wrong-password' }))), [
      400,
      'non_field_errors',
    ]);
    const other = await servePfcon({ storage: 'another-kind' });
    try {
      const answer = await create(good('no', { compute_url: `${other.root}/api/v1/` }));
      assert.deepEqual(complaints(answer), [400, 'non_field_errors']);
    } finally {
      await other.close();
    }
    const found = await request('GET', '/api/v1/computeresources/search/?name_exact=no');
    assert.equal(found.json.count, 0);
  });

  it('are answered with all fields of the contract, secrets masked', async () => {
    const made = await create(good('masked', { compute_auth_token: 'a secret token', max_job_exec_seconds: 60 }));
    assert.equal(made.status, 201, made.text);
    assert.deepEqual(
      CONTRACT_FIELDS.filter((name) => !(name in made.json)),
      [],
    );
    assert.equal(made.json.compute_user, 'pfcon');
    assert.equal(made.json.compute_password, '********');
    assert.equal(made.json.compute_auth_token, '********');
    assert.equal(made.json.compute_auth_url, `${pfcon.root}/api/v1/auth-token/`);
    assert.equal(made.json.compute_requires_copy_job, true);
    assert.equal(made.headers.get('location'), made.json.url);
    for (const as of [undefined, server.admin]) {
      const shown = await request('GET', String(made.json.url), as ? { as } : {});
      assert.equal('compute_url' in shown.json, as !== undefined);
      for (const secret of ['compute_user', 'compute_password', 'compute_auth_token'])
        assert.equal(secret in shown.json, false);
    }
    const list = await request('GET', `${LIST}?limit=100`, { as: server.admin });
    assert.equal(list.text.includes(PASSWORD) || list.text.includes('a secret token'), false);
  });

  it('use an own token instead of asking for one, and a blank token address means the default', async () => {
    pfcon.asked.length = 0;
    const made = await create(good('own-token', { compute_auth_token: 'mine', compute_auth_url: '' }));
    assert.equal(made.status, 201, made.text);
    assert.equal(made.json.compute_auth_url, `${pfcon.root}/api/v1/auth-token/`);
    assert.deepEqual(pfcon.asked, ['GET /api/v1/pluginjobs/']);
  });

  it('are accepted before their service answers, and asked again', { timeout: 60_000 }, async () => {
    const port = await freePort();
    const made = await create(good('late', { compute_url: `http://127.0.0.1:${port}/api/v1/` }));
    assert.equal(made.status, 201, made.text);
    assert.equal(made.json.compute_requires_copy_job, false);
    const late = await servePfcon({}, port);
    try {
      const copies = async () => (await request('GET', String(made.json.url))).json.compute_requires_copy_job;
      while (!(await copies())) await pause(200);
    } finally {
      await late.close();
    }
  });

  it('of this machine need no name and password', async () => {
    const made = await create({ name: 'second-builtin', compute_url: 'builtin:' });
    assert.equal(made.status, 201, made.text);
    assert.equal(made.json.compute_auth_url, '');
    assert.equal(made.json.compute_password, '');
    assert.equal(made.json.compute_auth_token, '');
  });

  it('can be changed; what is left out or masked stays', async () => {
    const { id, modification_date } = (await create(good('before', { description: 'one' }))).json;
    const address = { compute_url: `${pfcon.root}/api/v1/` };
    const changed = await change(id, {
      name: 'after',
      ...address,
      compute_password: '********',
      max_job_exec_seconds: 5,
    });
    assert.equal(changed.status, 200, changed.text);
    const { name, description, compute_user, compute_password, max_job_exec_seconds } = changed.json;
    assert.deepEqual(
      [name, description, compute_user, compute_password, max_job_exec_seconds],
      ['after', 'one', 'pfcon', '********', 5],
    );
    assert.ok(String(changed.json.modification_date) > String(modification_date));
    assert.deepEqual(complaints(await change(id, { name: 'builtin', ...address })), [400, 'name']);
    assert.deepEqual(complaints(await change(id, { ...address })), [400, 'name']);
    assert.equal((await change(99999999, good('none'))).status, 404);
  });

  it('do not send a stored secret to another address', async () => {
    const { id } = (await create(good('keeper'))).json;
    const thief = await servePfcon();
    try {
      const there = { name: 'keeper', compute_url: `${thief.root}/api/v1/` };
      assert.deepEqual(complaints(await change(id, there)), [400, 'compute_password']);
      assert.deepEqual(complaints(await change(id, { ...there, compute_password: '********' })), [
        400,
        'compute_password',
      ]);
      const tokenThere = {
        ...good('keeper'),
        compute_auth_url: `${thief.root}/auth-token/`,
        compute_password: '********',
      };
      assert.deepEqual(complaints(await change(id, tokenThere)), [400, 'compute_password']);
      assert.deepEqual(thief.asked, []);
    } finally {
      await thief.close();
    }
  });

  it('stay while a plugin has no other', async () => {
    const { id, name } = (await create(good('only'))).json;
    const descriptor = {
      name: 'pl-only',
      version: '1',
      type: 'ds',
      dock_image: 'x',
      execshell: 'sh',
      selfpath: '/',
      selfexec: 'x',
      parameters: [],
    };
    const form = new FormData();
    form.set('compute_names', String(name));
    form.set('fname', new Blob([JSON.stringify(descriptor)]), 'descriptor.json');
    const plugin = await request('POST', '/svc-admin/api/v1/', { as: server.admin, multipart: form });
    assert.equal(plugin.status, 201, plugin.text);
    const remove = () => request('DELETE', `${LIST}${id}/`, { as: server.admin });
    assert.deepEqual(complaints(await remove()), [400, 'non_field_errors']);
    await request('PUT', `/svc-admin/api/v1/${plugin.json.id}/`, {
      as: server.admin,
      json: { compute_names: 'only, builtin' },
    });
    assert.equal((await remove()).status, 204);
    assert.equal((await remove()).status, 404);
    const left = await request('GET', String(plugin.json.compute_resources));
    assert.deepEqual(left.json.count, 1);
    assert.equal(left.json.results?.[0]?.name, 'builtin');
  });
});
