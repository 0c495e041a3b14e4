import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { sql } from 'kysely';
import type { Answer } from '../helpers/client.ts';
import { type Bench, openBench } from '../instances/bench.ts';
import { contentsOf } from '../wire/refusals.ts';

let bench: Bench;
before(async () => {
  bench = await openBench();
});
after(() => bench.close());

function signUp(username: string, email = `${Math.random()}@example.org`): Promise<Answer> {
  return bench.request('POST', '/api/v1/users/', { json: { username, email, password: 'a-password' } });
}

test('names that would be no folders, or system folders, are refused', async () => {
  const before = await contentsOf(bench);
  for (const name of [
    '....',
    'a/bc',
    'a,bc',
    'ab\u0007cd',
    'home',
    'SERVICES',
    'Public',
    'abc',
    'x'.repeat(33),
    '../../x',
    'ab\0cd',
    'new\nline',
  ]) {
    const answer = await signUp(name);
    assert.deepEqual([answer.status, Object.keys(answer.json)], [400, ['username']], JSON.stringify(name));
  }
  for (const email of [
    'x',
    'a@b',
    'a b@example.org',
    'a\u0001@example.org',
    `${'x'.repeat(250)}@example.org`,
    'a@@example.org',
  ]) {
    const answer = await signUp('good-name', email);
    assert.deepEqual([answer.status, Object.keys(answer.json)], [400, ['email']], email);
  }
  assert.deepEqual(await contentsOf(bench), before);
});

test('of twenty sign-ups at once with one name in different case exactly one wins', async () => {
  const letters = [...'contested'];
  const names = Array.from({ length: 20 }, (_, bits) =>
    letters.map((letter, index) => ((bits >> (index % 5)) & 1 ? letter.toUpperCase() : letter)).join(''),
  );
  const answers = await Promise.all(names.map((name) => signUp(name)));
  assert.equal(answers.filter(({ status }) => status === 201).length, 1);
  for (const { status, json } of answers)
    if (status !== 201) assert.deepEqual([status, Object.keys(json)], [400, ['username']]);
  const { database } = bench;
  const [winner] = await database
    .selectFrom('account')
    .select('username')
    .where('username', 'ilike', 'contested')
    .execute();
  const homes = await database
    .selectFrom('folder')
    .select('path')
    .where('path', 'ilike', 'home/contested%')
    .orderBy('path')
    .execute();
  const home = `home/${winner?.username}`;
  assert.deepEqual(
    homes.map(({ path }) => path),
    [home, `${home}/feeds`, `${home}/uploads`],
  );
});

test('of sign-ups at once with one e-mail address exactly one wins', async () => {
  const answers = await Promise.all(
    Array.from({ length: 8 }, (_, index) =>
      signUp(`mail-user-${index}`, index % 2 ? 'One@Example.org' : 'one@example.org'),
    ),
  );
  assert.equal(answers.filter(({ status }) => status === 201).length, 1);
});

test('a sign-up that fails half-way leaves no half account', async () => {
  const { database } = bench;
  await sql`create function refuse_link() returns trigger language plpgsql as $$ begin raise 'no link'; end $$`.execute(
    database,
  );
  await sql`create trigger refuse before insert on link_file for each row execute function refuse_link()`.execute(
    database,
  );
  const before = await contentsOf(bench);
  assert.equal((await signUp('half-user')).status, 500);
  assert.deepEqual(await contentsOf(bench), before);
  await sql`drop trigger refuse on link_file`.execute(database);
  assert.equal((await signUp('half-user')).status, 201);
});

test('nobody signs up into a home that is there already', async () => {
  const made = await bench.request('POST', '/api/v1/filebrowser/', {
    as: bench.admin,
    json: { path: 'home/prepared' },
  });
  assert.equal(made.status, 201, made.text);
  const before = await contentsOf(bench);
  const answer = await signUp('prepared');
  assert.deepEqual([answer.status, Object.keys(answer.json)], [400, ['username']]);
  assert.deepEqual(await contentsOf(bench), before);
});

test('the groups that the system needs cannot be deleted', async () => {
  const groups = await bench.request('GET', '/api/v1/groups/', { as: bench.admin });
  const before = await contentsOf(bench);
  for (const index of [0, 1]) {
    const group = groups.json.results?.[index];
    const answer = await bench.request('DELETE', String(group?.url), { as: bench.admin });
    assert.deepEqual([answer.status, Object.keys(answer.json)], [400, ['non_field_errors']], String(group?.name));
  }
  assert.deepEqual(await contentsOf(bench), before);
});
