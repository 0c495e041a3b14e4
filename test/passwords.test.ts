import assert from 'node:assert/strict';
import { test } from 'node:test';
import { hashPassword, needsRehash, verifyPassword } from '../src/passwords.ts';

/** RFC 9106 has no vector without a secret; this one is of the reference implementation's own tests (`phc-winner-argon2`). */
const REFERENCE = '$argon2id$v=19$m=65536,t=2,p=1$c29tZXNhbHQ$CTFhFdXPJO1aFaMaO6Mm5c8y7cJHAph8ArZWb2GRPPc';

/** Made by Django 4.2: `make_password('lètmein', 'seasalt', 'pbkdf2_sha256')`, of its own tests (`auth_tests/test_hashers.py`). */
const DJANGO = 'pbkdf2_sha256$600000$seasalt$OAXyhAQ/4ZDA9V5RMExt3C1OwQdUpLZ99vm1McFlLRA=';

test('a stored text that is no hash lets nobody in', async () => {
  for (const stored of [
    '',
    '!',
    'password',
    '$argon2id$',
    '$argon2id$v=19$m=1,t=0,p=0$AA$',
    'pbkdf2_sha256$x$y',
    'md5$a$b',
  ]) {
    assert.equal(await verifyPassword('password', stored), false, stored);
  }
});

test('a wrong password is refused, the right one accepted', async () => {
  const stored = await hashPassword('correct horse');
  assert.equal(await verifyPassword('correct horsf', stored), false);
  assert.equal(await verifyPassword('', stored), false);
  assert.equal(await verifyPassword('correct horse', stored), true);
});

test('equal passwords have different hashes', async () => {
  assert.notEqual(await hashPassword('correct horse'), await hashPassword('correct horse'));
});

test('hashes of other programs are understood, and are to be replaced', async () => {
  assert.equal(await verifyPassword('password', REFERENCE), true);
  assert.equal(await verifyPassword('Password', REFERENCE), false);
  assert.equal(await verifyPassword('lètmein', DJANGO), true);
  assert.equal(await verifyPassword('letmein', DJANGO), false);
  assert.equal(needsRehash(REFERENCE), true);
  assert.equal(needsRehash(DJANGO), true);
  assert.equal(needsRehash(await hashPassword('correct horse')), false);
});
