import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import type { Answer } from '../helpers/client.ts';
import { type Bench, openBench } from '../instances/bench.ts';

let bench: Bench;
before(async () => {
  bench = await openBench();
});
after(() => bench.close());

const token = (username: string, password: string): Promise<Answer> =>
  bench.request('POST', '/api/v1/auth-token/', { json: { username, password } });
const basic = (username: string, password: string): Promise<Answer> =>
  bench.request('GET', '/api/v1/', { as: { username, password } });

/** Django's own: `make_password('lètmein', 'seasalt', 'pbkdf2_sha256')` (`auth_tests/test_hashers.py` of Django 4.2). */
const DJANGO = {
  password: 'lètmein',
  hash: 'pbkdf2_sha256$600000$seasalt$OAXyhAQ/4ZDA9V5RMExt3C1OwQdUpLZ99vm1McFlLRA=',
};

test("a password of Django's lets in, and its hash becomes ours", async () => {
  const user = await bench.user('django');
  const account = bench.database.selectFrom('account').select('password_hash').where('id', '=', user.id);
  await bench.database.updateTable('account').set({ password_hash: DJANGO.hash }).where('id', '=', user.id).execute();
  assert.equal((await token(user.username, 'letmein!')).status, 400);
  assert.equal((await account.executeTakeFirstOrThrow()).password_hash, DJANGO.hash);
  assert.equal((await token(user.username, DJANGO.password)).status, 200);
  assert.match((await account.executeTakeFirstOrThrow()).password_hash, /^\$argon2id\$/);
  assert.equal((await token(user.username, DJANGO.password)).status, 200);
});

test('wrong names and wrong passwords are told apart by nobody', async () => {
  const user = await bench.user('known');
  const answers = [await token(user.username, 'wrong'), await token('nobody-here', 'wrong')];
  assert.deepEqual(
    answers.map(({ status, text }) => [status, text.length > 0]),
    [
      [400, true],
      [400, true],
    ],
  );
  assert.equal(answers[0]?.text, answers[1]?.text);
  assert.equal((await basic(user.username, 'wrong')).text, (await basic('nobody-here', 'wrong')).text);
});

test('after many failures even the right password waits, and nobody else does', async () => {
  const [attacked, other] = [await bench.user('attacked'), await bench.user('bystander')];
  assert.equal((await basic(attacked.username, attacked.password)).status, 200);
  for (let failure = 0; failure < 20; failure += 1) await token(attacked.username, `guess ${failure}`);
  const refused = await token(attacked.username, attacked.password);
  assert.equal(refused.status, 429);
  assert.ok(Number(refused.headers.get('retry-after')) > 0);
  assert.equal((await basic(attacked.username, attacked.password)).status, 429, 'also where it is remembered');
  for (const disguise of [`${attacked.username}\0`, `\0${attacked.username}`])
    assert.equal((await basic(disguise, attacked.password)).status, 401, 'a null character does not hide the name');
  assert.equal((await token(other.username, other.password)).status, 200);
  assert.equal((await basic(other.username, other.password)).status, 200);
});

test('guesses at the same moment count like others', async () => {
  const user = await bench.user('parallel');
  const guesses = Array.from({ length: 60 }, (_, index) => token(user.username, `guess ${index}`));
  const statuses = (await Promise.all([...guesses, token(user.username, user.password)])).map(({ status }) => status);
  assert.equal(statuses.at(-1), 429);
});

test('log-ins that succeed are never counted', async () => {
  const user = await bench.user('busy');
  for (let attempt = 0; attempt < 30; attempt += 1)
    assert.equal((await token(user.username, user.password)).status, 200);
});

test('a name as long as a body is a wrong name', async () => {
  assert.equal((await token('x'.repeat(1_000_000), 'y'.repeat(1_000_000))).status, 400);
});
