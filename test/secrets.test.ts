import assert from 'node:assert/strict';
import { mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { loadSecrets, Secrets, UnreadableSecret } from '../src/secrets.ts';

let folder: string;
before(async () => {
  folder = await mkdtemp('/tmp/hypercube-secrets-');
});
after(() => rm(folder, { recursive: true }));

const secrets = new Secrets('0123456789abcdef0123456789abcdef');

test('what another key has encrypted is refused', () => {
  const other = new Secrets('fedcba9876543210fedcba9876543210');
  assert.throws(() => other.decrypt(secrets.encrypt('text')), UnreadableSecret);
});

test('a change of any single byte is noticed', () => {
  const stored = secrets.encrypt('text');
  for (const index of stored.keys()) {
    const damaged = Buffer.from(stored);
    damaged[index] = (damaged[index] ?? 0) ^ 1;
    assert.throws(() => secrets.decrypt(damaged), UnreadableSecret, `byte ${index}`);
  }
});

test('a text that was cut off is noticed', () => {
  const stored = secrets.encrypt('text');
  for (let length = 0; length < stored.length; length++) {
    assert.throws(() => secrets.decrypt(stored.subarray(0, length)), UnreadableSecret, `length ${length}`);
  }
});

test('texts come back, and equal texts look different', () => {
  for (const text of ['', 'pässword ☃', 'x'.repeat(10_000)]) assert.equal(secrets.decrypt(secrets.encrypt(text)), text);
  assert.notDeepEqual(secrets.encrypt('text'), secrets.encrypt('text'));
});

test('keys of different purposes are different, and the same each time', () => {
  assert.equal(secrets.derive('one').length, 32);
  assert.notDeepEqual(secrets.derive('one'), secrets.derive('other'));
  assert.deepEqual(secrets.derive('one'), new Secrets('0123456789abcdef0123456789abcdef').derive('one'));
});

test('a damaged key file is refused, not replaced', async () => {
  const data = await mkdtemp(join(folder, 'damaged-'));
  await writeFile(join(data, 'secret.key'), 'short\n');
  await assert.rejects(loadSecrets({ secretKey: null, data }), UnreadableSecret);
  assert.equal(await readFile(join(data, 'secret.key'), 'utf8'), 'short\n');
});

test('the key is made once, however many ask at the same time, and only its owner can read it', async () => {
  const data = join(folder, 'made');
  const loaded = await Promise.all([1, 2, 3, 4].map(() => loadSecrets({ secretKey: null, data })));
  loaded.push(await loadSecrets({ secretKey: null, data }));
  const [first] = loaded;
  for (const other of loaded) assert.deepEqual(other.derive('test'), first?.derive('test'));
  assert.deepEqual(await readdir(data), ['secret.key']);
  assert.equal((await stat(join(data, 'secret.key'))).mode & 0o777, 0o600);
});
