import assert from 'node:assert/strict';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { ConfigError, loadConfig, SETTINGS, variableName } from '../src/config.ts';
import { CONFIGURATION_DOCUMENT, configurationDocument } from '../src/config-document.ts';

function problemsOf(env: Record<string, string>): readonly string[] {
  try {
    loadConfig(env);
  } catch (error) {
    assert.ok(error instanceof ConfigError);
    return error.problems;
  }
  return assert.fail('the configuration was accepted');
}

test('a wrong value is named with what it holds and what it should hold', () => {
  assert.deepEqual(problemsOf({ HYPERCUBE_PORT: '80a' }), [
    'HYPERCUBE_PORT holds "80a"; it should be a whole number from 0 to 65535.',
  ]);
});

test('all wrong values are reported at once', () => {
  const problems = problemsOf({ HYPERCUBE_PORT: '-1', HYPERCUBE_SIGN_UP: 'yes', HYPERCUBE_ENVIRONMENT: 'test' });
  assert.equal(problems.length, 3);
  for (const name of ['PORT', 'SIGN_UP', 'ENVIRONMENT']) {
    assert.equal(problems.filter((problem) => problem.startsWith(`HYPERCUBE_${name} `)).length, 1, name);
  }
});

test('an unknown variable is an error that suggests the nearest name', () => {
  assert.deepEqual(problemsOf({ HYPERCUBE_ADMIN_PASWORD: 'x' }), [
    'HYPERCUBE_ADMIN_PASWORD is not a setting; did you mean HYPERCUBE_ADMIN_PASSWORD?',
  ]);
});

test('the value of a secret is never shown', () => {
  const secrets = {
    HYPERCUBE_ADMIN_PASSWORD: 'hunter2',
    HYPERCUBE_SECRET_KEY: 'tooshort',
    DATABASE_URL: 'mysql://a:pw@h',
  };
  const problems = problemsOf(secrets);
  assert.equal(problems.length, 3);
  for (const secret of Object.values(secrets)) assert.ok(!problems.join('\n').includes(secret));
});

test('a secret can come from a file, and an unreadable file is named', () => {
  const folder = mkdtempSync(join(tmpdir(), 'config-'));
  try {
    const file = join(folder, 'password');
    writeFileSync(file, 'from a file\n');
    assert.equal(loadConfig({ HYPERCUBE_ADMIN_PASSWORD_FILE: file }).adminPassword, 'from a file');
    assert.match(problemsOf({ HYPERCUBE_ADMIN_PASSWORD_FILE: join(folder, 'none') })[0] ?? '', /_FILE holds .*none/);
  } finally {
    rmSync(folder, { recursive: true });
  }
});

for (const [name, value] of [
  ['HYPERCUBE_ADMIN_PREFIX', '/api/v1/'],
  ['HYPERCUBE_ADMIN_PREFIX', 'svc-admin'],
  ['HYPERCUBE_ADMIN_PREFIX', '/'],
  ['HYPERCUBE_BASE_URL', 'ftp://example.org'],
  ['HYPERCUBE_TRUSTED_PROXIES', '10.0.0.1,proxy'],
  ['HYPERCUBE_CORS_ORIGINS', 'https://a.example/path'],
  ['HYPERCUBE_CORS_ORIGINS', '*,https://a.example'],
  ['HYPERCUBE_ALLOWED_HOSTS', 'a b'],
  ['HYPERCUBE_CONTAINER_USER', 'root'],
  ['HYPERCUBE_MAX_UPLOAD_BYTES', '1e9'],
  ['HYPERCUBE_ADMIN_USERNAME', 'a/b/c'],
] as const) {
  test(`${name}=${value} is refused`, () => {
    assert.match(problemsOf({ [name]: value })[0] ?? '', new RegExp(`^${name} holds`));
  });
}

test('defaults depend on the environment where that is safer', () => {
  assert.equal(loadConfig({}).corsOrigins, '*');
  assert.deepEqual(loadConfig({ HYPERCUBE_ENVIRONMENT: 'production' }).corsOrigins, []);
});

test('values are read', () => {
  const config = loadConfig({
    HYPERCUBE_DATABASE_URL: 'postgres://u@h/d',
    DATABASE_URL: 'postgres://other@h/d',
    HYPERCUBE_TRUSTED_PROXIES: '10.0.0.1, fd00::/8',
    HYPERCUBE_ALLOWED_HOSTS: 'a.example,.b.example',
    HYPERCUBE_BASE_URL: 'https://a.example/',
    HYPERCUBE_TOKEN_LIFETIME_DAYS: '',
    HYPERCUBE_SIGN_UP: 'false',
  });
  assert.equal(config.databaseUrl, 'postgres://u@h/d');
  assert.deepEqual(config.trustedProxies, ['10.0.0.1', 'fd00::/8']);
  assert.deepEqual(config.allowedHosts, ['a.example', '.b.example']);
  assert.equal(config.baseUrl, 'https://a.example');
  assert.equal(config.tokenLifetimeDays, null);
  assert.equal(config.signUp, false);
  assert.ok(config.data.startsWith('/'));
});

test('every example is a value that its setting accepts', () => {
  for (const [key, setting] of Object.entries(SETTINGS)) {
    if (setting.secret && key === 'secretKey') continue;
    assert.notEqual(setting.read(setting.example), undefined, variableName(key));
  }
});

test('docs/configuration.md is what `npm run docs` writes', () => {
  assert.equal(readFileSync(CONFIGURATION_DOCUMENT, 'utf8'), configurationDocument());
});
