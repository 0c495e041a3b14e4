/** Permissions of folders, files and link files through the server. */
import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import type { Transaction } from '../../src/database/database.ts';
import { ownAcl } from '../../src/files/access-lists.ts';
import { grant, revoke } from '../../src/files/sharing.ts';
import type { Answer, Json } from '../helpers/client.ts';
import type { Credentials } from '../helpers/server.ts';
import { type Bench, openBench } from '../instances/bench.ts';

type Person = Credentials & { readonly id: number };

let bench: Bench;
let alice: Person;
let bob: Person;
let stranger: Person;
let count = 0;

before(async () => {
  bench = await openBench();
  [alice, bob, stranger] = [await bench.user('alice'), await bench.user('bob'), await bench.user('stranger')];
  const { id: group_id } = await bench.database
    .insertInto('account_group')
    .values({ name: 'lab' })
    .returning('id')
    .executeTakeFirstOrThrow();
  await bench.database.insertInto('membership').values({ group_id, account_id: bob.id }).execute();
});
after(() => bench?.close());

const get = (path: unknown, as?: Credentials): Promise<Answer> => bench.request('GET', String(path), as ? { as } : {});
const send = (method: string, path: unknown, as: Credentials, json: unknown = {}): Promise<Answer> =>
  bench.request(method, String(path), { as, json });

async function upload(path: string, as: Credentials): Promise<Answer> {
  const form = new FormData();
  form.set('upload_path', path);
  form.set('fname', new Blob(['text']), 'name');
  return bench.request('POST', '/api/v1/userfiles/', { as, multipart: form });
}

interface Objects {
  readonly path: string;
  readonly folder: Json;
  readonly inner: Json;
  readonly file: Json;
}

/** A folder of alice's with a folder in it, and a file in that. */
async function makeObjects(): Promise<Objects> {
  count += 1;
  const path = `home/${alice.username}/uploads/d${count}`;
  const { id, parent_folder } = (await upload(`${path}/inner/file.txt`, alice)).json;
  const inner = (await get(parent_folder, alice)).json;
  const folder = (await get(inner.parent, alice)).json;
  return { path, folder, inner, file: (await get(`/api/v1/filebrowser/files/${id}/`, alice)).json };
}

async function share(
  object: Json,
  json: object = { username: bob.username },
  as: Credentials = alice,
  list = object.user_permissions,
): Promise<Json> {
  const answer = await send('POST', list, as, json);
  assert.equal(answer.status, 201, answer.text);
  return answer.json;
}

/** The members of a list: an array of what is asked of each. */
async function shown(list: unknown, ...members: readonly string[]): Promise<readonly unknown[]> {
  const answer = await get(list, bench.admin);
  assert.equal(answer.status, 200, answer.text);
  const { results } = answer.json;
  assert.ok(Array.isArray(results));
  return results.map((one) => members.map((member) => one[member]).join(' '));
}

/** By name. */
const levels = async (object: Json): Promise<readonly unknown[]> =>
  (await shown(object.user_permissions, 'user_username', 'permission')).toSorted();

async function shortcuts(as: Credentials, path: string): Promise<readonly Json[]> {
  const { results } = (await get('/api/v1/filebrowser/search/?path=SHARED', as)).json;
  const { json } = await get(`${results?.[0]?.link_files}?limit=1000`, as);
  assert.ok(Array.isArray(json.results));
  return json.results.filter((link) => link.path === path);
}

/** Whether a promise stays open while others are given the time to go on. */
async function isWaiting(work: Promise<unknown>): Promise<boolean> {
  const pause = new Promise((resolve) => setTimeout(() => resolve('waiting'), 300));
  return (await Promise.race([work, pause])) === 'waiting';
}

describe('who may', () => {
  it('shows permissions to those who have one, and lets the owner alone change them', async () => {
    for (const object of [(await makeObjects()).folder, (await makeObjects()).file]) {
      const list = object.user_permissions;
      const made = await share(object);
      for (const path of [list, `${list}search/`, object.group_permissions, made.url]) {
        assert.equal((await get(path)).status, 401);
        assert.equal((await get(path, stranger)).status, 403);
        for (const as of [alice, bob, bench.admin]) assert.equal((await get(path, as)).status, 200);
      }
      for (const as of [bob, stranger]) {
        assert.equal((await send('POST', list, as, { username: stranger.username })).status, 403);
        assert.equal((await send('PUT', made.url, as, { permission: 'w' })).status, 403);
        assert.equal((await send('DELETE', made.url, as)).status, 403);
      }
      assert.deepEqual(await levels(object), [`${bob.username} r`]);
    }
  });

  it('does not take what is public for shared', async () => {
    const { folder } = await makeObjects();
    await send('PUT', folder.url, alice, { public: true });
    assert.equal((await get(folder.url, stranger)).status, 200);
    assert.equal((await get(folder.user_permissions, stranger)).status, 403);
    assert.equal((await get(`${folder.group_permissions}search/`, stranger)).status, 403);
  });

  it('answers for what is not there', async () => {
    const { folder } = await makeObjects();
    const made = await share(folder);
    for (const base of ['', 'files/', 'linkfiles/']) {
      for (const kind of ['user', 'group']) {
        const of = `/api/v1/filebrowser/${base}`;
        assert.equal((await get(`${of}99999999/${kind}permissions/`, alice)).status, 404);
        assert.equal((await get(`${of}99999999/${kind}permissions/search/`, alice)).status, 404);
        assert.equal((await get(`${of}${kind}permissions/99999999/`, alice)).status, 404);
        assert.equal((await send('PUT', `${of}${kind}permissions/99999999/`, alice, {})).status, 404);
      }
    }
    // an id of one kind means nothing among the others
    assert.equal((await get(`/api/v1/filebrowser/files/userpermissions/${made.id}/`, alice)).status, 404);
    assert.equal((await get(`/api/v1/filebrowser/grouppermissions/${made.id}/`, alice)).status, 404);
  });
});

describe('bad input', () => {
  it('is refused by field, before the object is looked at', async () => {
    const { folder } = await makeObjects();
    for (const [json, fields] of [
      [{}, ['username']],
      [{ username: 'abc' }, ['username']],
      [{ username: 'x'.repeat(33) }, ['username']],
      [{ username: 'nobody-of-this-name' }, ['username']],
      [{ username: null, permission: 'x' }, ['permission', 'username']],
      [{ username: 'nobody-of-this-name', permission: 'rw' }, ['permission', 'username']],
      [{ username: bob.username, permission: '' }, ['permission']],
    ] as const) {
      for (const [list, as] of [
        [folder.user_permissions, alice],
        [folder.user_permissions, stranger],
        ['/api/v1/filebrowser/99999999/userpermissions/', alice],
      ] as const) {
        const answer = await send('POST', list, as, json);
        assert.equal(answer.status, 400);
        assert.deepEqual(Object.keys(answer.json).sort(), fields);
      }
    }
    for (const json of [{}, { grp_name: 'no such group' }, { grp_name: 5 }]) {
      const answer = await send('POST', folder.group_permissions, alice, json);
      assert.equal(answer.status, 400);
      assert.deepEqual(Object.keys(answer.json), ['grp_name']);
    }
    const made = await share(folder);
    for (const json of [{}, { permission: 'rw' }, { permission: null }]) {
      const answer = await send('PUT', made.url, alice, json);
      assert.equal(answer.status, 400);
      assert.deepEqual(Object.keys(answer.json), ['permission']);
    }
  });

  it('does not grant twice, and loses nothing by it', async () => {
    const { folder } = await makeObjects();
    await share(folder);
    const again = await send('POST', folder.user_permissions, alice, { username: bob.username, permission: 'w' });
    assert.equal(again.status, 400);
    assert.deepEqual(Object.keys(again.json), ['non_field_errors']);
    assert.deepEqual(await levels(folder), [`${bob.username} r`]);
  });

  it('grants once when asked twice at the same moment', async () => {
    const { folder } = await makeObjects();
    const ask = () => send('POST', folder.user_permissions, alice, { username: bob.username });
    const answers = await Promise.all([ask(), ask(), ask()]);
    assert.deepEqual(answers.map((answer) => answer.status).sort(), [201, 400, 400]);
    assert.equal((await shortcuts(bob, String(folder.path))).length, 1);
  });
});

describe('what a permission of a folder reaches', () => {
  it('lets the grantee reach all below, and not what is beside or above', async () => {
    const { folder, inner, file } = await makeObjects();
    for (const object of [folder, inner, file]) assert.equal((await get(object.url, bob)).status, 403);
    await share(folder, { grp_name: 'lab' }, alice, folder.group_permissions);
    for (const object of [folder, inner, file]) assert.equal((await get(object.url, bob)).status, 200);
    assert.equal((await get(folder.parent, bob)).status, 403);
    assert.equal((await upload(`${folder.path}/inner/b.txt`, bob)).status, 400);
    assert.deepEqual(await shown(file.group_permissions, 'group_name', 'permission', 'file_fname'), [
      `lab r ${file.fname}`,
    ]);
  });

  it('writes over what was granted below, and takes only the same away again', async () => {
    const { folder, inner, file } = await makeObjects();
    await share(inner, { username: stranger.username, permission: 'w' });
    const below = await share(file, { username: bob.username, permission: 'w' });
    const made = await share(folder, { username: bob.username, permission: 'r' });
    for (const object of [folder, file]) assert.ok((await levels(object)).includes(`${bob.username} r`));
    await send('PUT', made.url, alice, { permission: 'w' });
    for (const object of [folder, inner, file]) assert.ok((await levels(object)).includes(`${bob.username} w`));
    await send('PUT', below.url, alice, { permission: 'r' });
    assert.equal((await send('DELETE', made.url, alice)).status, 204);
    assert.equal((await get(made.url, alice)).status, 404);
    assert.deepEqual(await levels(folder), []);
    assert.deepEqual(await levels(inner), [`${stranger.username} w`]);
    assert.deepEqual(await levels(file), [`${stranger.username} w`, `${bob.username} r`].sort());
    assert.equal((await get(inner.url, bob)).status, 403);
    assert.equal((await get(file.url, bob)).status, 200);
  });

  it('lets an inherited one be revoked on one object, without touching the folder', async () => {
    const { folder, file } = await makeObjects();
    await share(folder);
    const { results } = (await get(file.user_permissions, bob)).json;
    const [own] = Array.isArray(results) ? results : [];
    assert.equal(own?.file, file.url);
    assert.equal((await get(own?.url, bob)).status, 200);
    assert.equal((await send('DELETE', own?.url, alice)).status, 204);
    assert.equal((await get(file.url, bob)).status, 403);
    assert.equal((await get(folder.url, bob)).status, 200);
    assert.deepEqual(await levels(folder), [`${bob.username} r`]);
  });

  it('shows the same permissions by the same ids, however often they are looked at', async () => {
    const { folder, file } = await makeObjects();
    await share(folder);
    const first = await shown(`${file.user_permissions}search/?username=${bob.username}`, 'url');
    assert.equal(first.length, 1);
    assert.deepEqual(await shown(file.user_permissions, 'url'), first);
    assert.deepEqual(await shown(`${file.user_permissions}search/?username=nobody`, 'url'), []);
  });

  it('gives the owner of the folder a say in what others put there', async () => {
    const { folder, path } = await makeObjects();
    await share(folder, { username: bob.username, permission: 'w' });
    for (const name of ['bobs.txt', 'new/deeper/bobs.txt']) {
      const { id } = (await upload(`${path}/${name}`, bob)).json;
      const file = (await get(`/api/v1/filebrowser/files/${id}/`, alice)).json;
      assert.equal(file.owner_username, bob.username);
      assert.ok((await levels(file)).includes(`${alice.username} w`));
    }
  });
});

describe('shortcuts in SHARED', () => {
  it('come with the first permission and go with the last one', async () => {
    const { folder, path } = await makeObjects();
    assert.deepEqual(await shortcuts(bench.admin, path), []);
    const one = await share(folder, { username: bob.username, permission: 'w' });
    const [link] = await shortcuts(bob, path);
    assert.ok(link);
    assert.equal(link.linked_folder, folder.url);
    assert.equal(link.owner_username, alice.username);
    assert.deepEqual(await levels(link), [`${bob.username} r`]);
    assert.deepEqual(await shortcuts(stranger, path), []);
    const other = await share(folder, { grp_name: 'lab' }, alice, folder.group_permissions);
    await send('DELETE', one.url, alice);
    assert.equal((await shortcuts(bob, path)).length, 1);
    await send('DELETE', other.url, alice);
    assert.deepEqual(await shortcuts(bench.admin, path), []);
  });

  it('are kept apart though their names would be alike', async () => {
    const { path } = await makeObjects();
    const folders = [];
    for (const name of ['a/b_c', 'a_b/c'])
      folders.push((await send('POST', '/api/v1/filebrowser/', alice, { path: `${path}/${name}` })).json);
    const [made] = await Promise.all(folders.map((folder) => share(folder)));
    const [first] = await shortcuts(bob, `${path}/a/b_c`);
    const [second] = await shortcuts(bob, `${path}/a_b/c`);
    assert.ok(first && second);
    assert.notEqual(first.fname, second.fname);
    await send('DELETE', made?.url, alice);
    assert.deepEqual(await shortcuts(bob, `${path}/a/b_c`), []);
    assert.equal((await shortcuts(bob, `${path}/a_b/c`)).length, 1);
  });

  it('follow a move, by target and by name, and are revoked at the new place', async () => {
    const { folder, path } = await makeObjects();
    const made = await share(folder);
    assert.equal((await send('PUT', folder.url, alice, { path: `${path}-moved` })).status, 200);
    assert.deepEqual(await shortcuts(bob, path), []);
    const [link] = await shortcuts(bob, `${path}-moved`);
    assert.equal(link?.fname, `SHARED/${path.replaceAll('/', '_')}-moved.chrislink`);
    await send('DELETE', made.url, alice);
    assert.deepEqual(await shortcuts(bench.admin, `${path}-moved`), []);
  });

  it('go with their file, and leave no access list behind', async () => {
    const { file } = await makeObjects();
    await share(file);
    assert.equal((await shortcuts(bob, String(file.fname))).length, 1);
    assert.equal((await send('DELETE', file.url, alice)).status, 204);
    assert.deepEqual(await shortcuts(bench.admin, String(file.fname)), []);
    const orphans = await bench.database
      .selectFrom('acl')
      .select('acl.id')
      .where(({ not, exists, selectFrom }) =>
        not(
          exists(
            selectFrom('folder')
              .select('id')
              .whereRef('folder.acl_id', '=', 'acl.id')
              .unionAll(selectFrom('file').select('id').whereRef('file.acl_id', '=', 'acl.id'))
              .unionAll(selectFrom('link_file').select('id').whereRef('link_file.acl_id', '=', 'acl.id')),
          ),
        ),
      )
      .execute();
    assert.deepEqual(orphans, []);
  });
});

describe('at the same moment', () => {
  const begin = async (work: (transaction: Transaction) => Promise<unknown>) => {
    const transaction = await bench.database.startTransaction().execute();
    await work(transaction);
    return transaction;
  };
  const inTransaction = <T>(work: (transaction: Transaction) => Promise<T>) =>
    bench.database.transaction().execute(work);
  const toBob = { column: 'account_id', id: 0 } as const;

  it('what is revoked above does not stay in a list that is being made below', async () => {
    const { folder, inner } = await makeObjects();
    const made = await share(folder);
    const copying = await begin((transaction) => ownAcl(transaction, { table: 'folder', id: Number(inner.id) }));
    const revoking = inTransaction((transaction) => revoke(transaction, 'folder', Number(made.id)));
    assert.equal(await isWaiting(revoking), true);
    await copying.commit().execute();
    await revoking;
    assert.deepEqual(await levels(inner), []);
    assert.equal((await get(inner.url, bob)).status, 403);
  });

  it('what is granted above is not missed by a list that is being made below', async () => {
    const { folder, inner } = await makeObjects();
    const object = { table: 'folder', id: Number(folder.id) } as const;
    const granting = await begin((transaction) => grant(transaction, object, { ...toBob, id: bob.id }, 'r'));
    const copying = inTransaction((transaction) => ownAcl(transaction, { table: 'folder', id: Number(inner.id) }));
    assert.equal(await isWaiting(copying), true);
    await granting.commit().execute();
    await copying;
    assert.deepEqual(await levels(inner), [`${bob.username} r`]);
  });
});
