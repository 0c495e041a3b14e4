import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { type Answer, clientOf, type Request } from '../helpers/client.ts';
import { startServer, type TestServer } from '../helpers/server.ts';
import { type ScriptedService, sendJson, serveScript } from './services.ts';

const ADMIN = '/svc-admin/api/v1/';
const WORD = { name: 'word', type: 'str', optional: true, default: 'hello', flag: '--word' };

describe('the catalogue', () => {
  let server: TestServer;
  let request: Request;
  const bob = { username: 'bobby', password: 'bobby1234' };

  before(async () => {
    server = await startServer();
    request = clientOf(server);
    await request('POST', '/api/v1/users/', { json: { ...bob, email: 'bob@example.org' } });
    const other = await request('POST', `${ADMIN}computeresources/`, {
      as: server.admin,
      json: { name: 'other', compute_url: 'builtin:' },
    });
    assert.equal(other.status, 201, other.text);
  });
  after(() => server?.close());

  const descriptor = (name: string, version: string, more: object = {}) => ({
    name,
    version,
    type: 'ds',
    dock_image: `example/${name}:${version}`,
    execshell: 'sh',
    selfpath: '/bin',
    selfexec: 'thing',
    parameters: [WORD],
    ...more,
  });
  const upload = (file: object | string, compute = 'builtin', more: Readonly<Record<string, string>> = {}) => {
    const form = new FormData();
    form.set('fname', new Blob([typeof file === 'string' ? file : JSON.stringify(file)]), 'descriptor.json');
    form.set('compute_names', compute);
    for (const [name, value] of Object.entries(more)) form.set(name, value);
    return request('POST', ADMIN, { as: server.admin, multipart: form });
  };
  const put = (id: unknown, json: object) => request('PUT', `${ADMIN}${id}/`, { as: server.admin, json });
  const complaints = ({ status, json }: Answer) => [status, ...Object.keys(json ?? {}).sort()];
  const list = async (path: string) => {
    const results = (await request('GET', path)).json.results;
    return Array.from({ length: Object.keys(results ?? {}).length }, (_, index) => results?.[index]);
  };
  const resourcesOf = async (id: unknown) =>
    (await list(`/api/v1/plugins/${id}/computeresources/`)).map((one) => String(one?.name));

  it('has the built-in plugins from the start, owned by the first administrator', async () => {
    const plugins = await list('/api/v1/plugins/?limit=100');
    const names = plugins.map((one) => `${one?.name} ${one?.version} ${one?.owner_username}`);
    for (const name of ['pl-dircopy 2.1.2', 'pl-dircopy 2.1.3', 'pl-tsdircopy 1.2.1', 'pl-topologicalcopy 1.0.12']) {
      assert.ok(names.includes(`${name} chris`), `${name} in ${names}`);
    }
  });

  it('is changed by nobody but staff', async () => {
    assert.equal((await request('POST', ADMIN, { json: {} })).status, 401);
    assert.equal((await request('POST', ADMIN, { as: bob, json: {} })).status, 403);
    assert.equal((await request('POST', '/api/v1/plugins/', { as: server.admin, json: {} })).status, 405);
  });

  it('takes no registration without compute resources and a descriptor', async () => {
    const names = { compute_names: 'builtin' };
    const post = (json: object) => request('POST', ADMIN, { as: server.admin, json });
    assert.deepEqual(complaints(await post({})), [400, 'compute_names']);
    assert.deepEqual(complaints(await post(names)), [400, 'non_field_errors']);
    assert.deepEqual(complaints(await post({ ...names, fname: 'text' })), [400, 'fname']);
    assert.deepEqual(complaints(await post({ compute_names: ' , ', fname: 'text' })), [400, 'compute_names', 'fname']);
    assert.deepEqual(complaints(await upload(descriptor('pl-no', '1'), 'nowhere')), [400, 'compute_names']);
    assert.deepEqual(complaints(await upload('')), [400, 'fname']);
    assert.deepEqual(complaints(await upload('{')), [400, 'fname']);
    assert.deepEqual(complaints(await upload(' '.repeat(1024 * 1024 + 1))), [400, 'fname']);
    assert.deepEqual(complaints(await upload({ ...descriptor('pl-no', '1'), min_cpu_limit: 'much' })), [400, 'fname']);
    assert.deepEqual(await list('/api/v1/plugins/search/?name=pl-no'), []);
  });

  it('ignores what a request says beside the descriptor, and what a descriptor says beside its members', async () => {
    const made = await upload(
      descriptor('pl-strict', '1', { compute_names: 'nowhere', owner_username: 'bobby' }),
      'builtin',
      {
        description: 'from the request',
        min_number_of_workers: '0',
      },
    );
    assert.equal(made.status, 201, made.text);
    assert.deepEqual([made.json.description, made.json.min_number_of_workers], ['', 1]);
    assert.deepEqual(await resourcesOf(made.json.id), ['builtin']);
    assert.equal(made.json.owner_username, 'chris');
  });

  it('refuses a version or image that is taken, and a type that changes', async () => {
    const made = await upload(descriptor('pl-taken', '1.0', { title: 'First' }));
    assert.equal(made.status, 201, made.text);
    assert.deepEqual(complaints(await upload(descriptor('pl-taken', '1.0', { dock_image: 'another' }))), [
      400,
      'non_field_errors',
    ]);
    assert.deepEqual(complaints(await upload(descriptor('pl-taken', '1.1', { dock_image: made.json.dock_image }))), [
      400,
      'non_field_errors',
    ]);
    assert.deepEqual(complaints(await upload(descriptor('pl-taken', '2.0', { type: 'fs', title: 'Second' }))), [
      400,
      'type',
    ]);
    const meta = await request('GET', String(made.json.meta));
    assert.deepEqual([meta.json.title, meta.json.type], ['First', 'ds']);
  });

  it('registers one of many equal requests', async () => {
    const answers = await Promise.all(Array.from({ length: 5 }, () => upload(descriptor('pl-race', '1'))));
    assert.deepEqual(answers.map(({ status }) => status).sort(), [201, 400, 400, 400, 400]);
  });

  it('adds a compute resource when a built-in plugin is registered again', async () => {
    const again = await upload(
      { ...descriptor('pl-dircopy', '2.1.3', { type: 'fs' }), dock_image: 'localhost/dircopy' },
      'other',
    );
    assert.equal(again.status, 201, again.text);
    assert.equal(again.json.dock_image, 'localhost/dircopy');
    assert.deepEqual(await resourcesOf(again.json.id), ['builtin', 'other']);
    assert.equal((await list('/api/v1/plugins/search/?name_exact=pl-dircopy')).length, 2);
  });

  it('changes where a plugin runs, and whose it is', async () => {
    const { id } = (await upload(descriptor('pl-moved', '1'))).json;
    for (const compute_names of [undefined, '', ' , ', 'nowhere']) {
      assert.deepEqual(complaints(await put(id, { compute_names })), [400, 'compute_names']);
    }
    const changed = await put(id, { compute_names: ' other,, builtin ', version: '9', min_number_of_workers: 0 });
    assert.equal(changed.status, 200, changed.text);
    assert.deepEqual([changed.json.version, changed.json.min_number_of_workers], ['1', 1]);
    assert.deepEqual(await resourcesOf(id), ['builtin', 'other']);
    assert.deepEqual(complaints(await put(id, { compute_names: 'builtin', owner_username: 'nobody' })), [
      400,
      'owner_username',
    ]);
    assert.deepEqual(await resourcesOf(id), ['builtin', 'other'], 'a refused change changes nothing');
    const given = await put(id, { compute_names: 'builtin', owner_username: 'bobby' });
    assert.deepEqual([given.json.owner_username, typeof given.json.owner], ['bobby', 'string']);
    const freed = await put(id, { compute_names: 'builtin', owner_username: null });
    assert.deepEqual([freed.json.owner_username, freed.json.owner], [null, null]);
    assert.equal((await put(99999999, { compute_names: 'builtin' })).status, 404);
  });

  it('forgets a plugin with its parameters, and the meta with its last version', async () => {
    const [one, two] = [
      (await upload(descriptor('pl-gone', '1'))).json,
      (await upload(descriptor('pl-gone', '2'))).json,
    ];
    const parameters = await list(String(one.parameters));
    const remove = (id: unknown) => request('DELETE', `${ADMIN}${id}/`, { as: server.admin });
    assert.equal((await remove(one.id)).status, 204);
    assert.equal((await remove(one.id)).status, 404);
    assert.equal((await request('GET', String(parameters[0]?.url))).status, 404);
    assert.equal((await request('GET', String(two.meta))).status, 200);
    assert.equal((await remove(two.id)).status, 204);
    assert.equal((await request('GET', String(two.meta))).status, 404);
    assert.equal((await upload(descriptor('pl-gone', '1'))).status, 201);
  });

  it('forgets the instances of a plugin with it, whoever they belong to', async () => {
    const { id } = (await upload(descriptor('pl-run', '1', { type: 'fs' }))).json;
    const instance = await request('POST', `/api/v1/plugins/${id}/instances/`, { as: bob, json: {} });
    assert.equal(instance.status, 201, instance.text);
    assert.equal((await request('DELETE', `${ADMIN}${id}/`, { as: server.admin })).status, 204);
    assert.equal((await request('GET', String(instance.json.url), { as: bob })).status, 404);
  });

  it('sorts versions as text, and as numbers when asked to', async () => {
    for (const version of ['1.2', '1.10', '1..3', '9']) await upload(descriptor('pl-sorted', version));
    const sorted = async (sort: string) =>
      (await list(`/api/v1/plugins/search/?name_exact=pl-sorted&sort=${sort}`)).map((one) => String(one?.version));
    assert.deepEqual(await sorted(''), ['9', '1.2', '1.10', '1..3']);
    assert.deepEqual(await sorted('version_number'), ['1..3', '1.2', '1.10', '9']);
    assert.deepEqual(await sorted('-version_number'), ['9', '1.10', '1.2', '1..3']);
    assert.deepEqual(await sorted('constructor'), ['9', '1.2', '1.10', '1..3']);
  });

  it('names a filter that is wrong', async () => {
    const bad = [
      'plugins/search/?compute_resource_id=x',
      'computeresources/search/?plugin_id=x',
      'plugins/metas/search/?id=x',
    ];
    for (const path of bad) {
      const name = /\?(\w+)=/.exec(path)?.[1];
      assert.deepEqual(complaints(await request('GET', `/api/v1/${path}`)), [400, name]);
    }
  });

  describe('a plugin store', () => {
    let store: ScriptedService;
    const item = (members: object, links: readonly object[] = []) => ({
      data: Object.entries(members).map(([name, value]) => ({ name, value })),
      links,
    });
    const collection = (items: readonly object[], more: object = {}) => ({
      collection: { version: '1.0', href: '', items, links: [], ...more },
    });

    before(async () => {
      store = await serveScript(({ url = '' }, _body, response) => {
        const parameters = { rel: 'parameters', href: `${store.root}${url}parameters/` };
        const plugin = { ...descriptor(`pl-store${url.replaceAll('/', '-')}`, '1'), stars: 3 };
        if (url.includes('/endless/parameters/'))
          return sendJson(response, 200, collection([], { links: [{ rel: 'next', href: 'x' }] }));
        if (url.includes('/parameters/'))
          return sendJson(response, 200, collection([item({ ...WORD, type: 'string' })]));
        if (url === '/huge/') return sendJson(response, 200, { text: 'x'.repeat(5 * 1024 * 1024) });
        if (url === '/none/') return sendJson(response, 200, collection([]));
        if (url === '/list/') return sendJson(response, 200, []);
        if (url === '/scalars/')
          return sendJson(response, 200, collection([item({})], { items: [1, null, { data: 5, links: 'x' }] }));
        if (url === '/file/')
          return sendJson(response, 200, collection([item(plugin, [{ ...parameters, href: 'file:///etc/passwd' }])]));
        if (url === '/wrong/')
          return sendJson(response, 200, collection([item({ ...plugin, version: 'v1' }, [parameters])]));
        if (url === '/refused/') return sendJson(response, 404, collection([]));
        return sendJson(response, 200, collection([item(plugin, [parameters])]));
      });
    });
    after(() => store?.close());

    const register = (path: string, compute_names = 'builtin') =>
      request('POST', ADMIN, { as: server.admin, json: { compute_names, plugin_store_url: `${store.root}${path}` } });

    it('is refused for whatever is wrong with it', async () => {
      for (const path of ['/endless/', '/huge/', '/none/', '/list/', '/scalars/', '/file/', '/wrong/', '/refused/']) {
        assert.deepEqual(complaints(await register(path)), [400, 'non_field_errors'], path);
      }
      for (const plugin_store_url of ['nope', 'file:///etc/passwd', 'ftp://example.org/']) {
        const json = { compute_names: 'builtin', plugin_store_url };
        assert.deepEqual(complaints(await request('POST', ADMIN, { as: server.admin, json })), [
          400,
          'plugin_store_url',
        ]);
      }
    });

    it('gives a plugin; the next time only its compute resources are set', async () => {
      const first = await register('/good/');
      assert.equal(first.status, 201, first.text);
      assert.equal(first.json.stars, 3);
      const [parameter] = await list(String(first.json.parameters));
      assert.deepEqual([parameter?.type, parameter?.default], ['string', 'hello']);
      const again = await register('/good/', 'other');
      assert.deepEqual([again.status, again.json.id], [201, first.json.id]);
      assert.deepEqual(await resourcesOf(first.json.id), ['other']);
    });
  });
});
