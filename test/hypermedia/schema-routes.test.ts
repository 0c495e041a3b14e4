import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import type { LightMyRequestResponse } from 'fastify';
import { parse } from 'yaml';
import { openApplication, type TestApplication } from '../helpers/application.ts';

describe('the API description', () => {
  let application: TestApplication;
  before(async () => {
    application = await openApplication();
  });
  after(() => application.close());

  const get = (url: string, accept?: string): Promise<LightMyRequestResponse> =>
    application.app.inject({ url, headers: accept === undefined ? {} : { accept } });

  test('what cannot be written in the wanted type is refused in YAML', async () => {
    for (const accept of ['text/plain', 'text/html', 'image/png', '']) {
      const answer = await get('/schema/', accept);
      assert.equal(answer.statusCode, 406, accept);
      assert.equal(answer.headers['content-type'], 'application/vnd.oai.openapi');
      assert.match(parse(answer.body).detail, /application\/json/);
    }
  });

  test('an unknown format is not found', async () => {
    for (const format of ['bogus', '', 'constructor', 'JSON'])
      assert.equal((await get(`/schema/?format=${format}`)).statusCode, 404, format);
  });

  test('it cannot be written to', async () => {
    const answer = await application.app.inject({ method: 'POST', url: '/schema/', payload: {} });
    assert.equal(answer.statusCode, 405);
    assert.equal(answer.headers.allow, 'GET, OPTIONS');
  });

  test('without a wish it is YAML, to be saved under a name', async () => {
    for (const accept of [undefined, '*/*', 'application/*', 'text/html,application/xhtml+xml,*/*;q=0.8']) {
      const answer = await get('/schema/', accept);
      assert.equal(answer.headers['content-type'], 'application/vnd.oai.openapi', String(accept));
      assert.equal(answer.headers['content-disposition'], 'inline; filename="Hypercube.yaml"');
      assert.ok(answer.body.startsWith('openapi: 3.0.3\n'));
    }
  });

  test('each type and format that it is known under gives the same description', async () => {
    const wanted = parse((await get('/schema/')).body);
    const asked: readonly (readonly [url: string, accept: string, type: string])[] = [
      ['/schema/', 'application/json', 'application/json'],
      ['/schema', 'application/vnd.oai.openapi+json', 'application/vnd.oai.openapi+json'],
      ['/schema/', 'application/yaml', 'application/yaml'],
      ['/schema/?format=json', 'text/plain', 'application/vnd.oai.openapi+json'],
      ['/schema/?format=yaml', '*/*', 'application/vnd.oai.openapi'],
    ];
    for (const [url, accept, type] of asked) {
      const answer = await get(url, accept);
      assert.equal(answer.headers['content-type'], type);
      assert.deepEqual(type.endsWith('json') ? JSON.parse(answer.body) : parse(answer.body), wanted);
    }
  });

  test('HEAD gives the headers, OPTIONS what is possible', async () => {
    const head = await application.app.inject({ method: 'HEAD', url: '/schema/' });
    assert.deepEqual([head.statusCode, head.body], [200, '']);
    const options = await application.app.inject({ method: 'OPTIONS', url: '/schema/' });
    assert.equal(options.statusCode, 200);
    assert.ok(JSON.parse(options.body).renders.includes('application/yaml'));
  });

  test('Swagger UI loads only what this server has, under a policy that allows nothing else', async () => {
    const page = await get('/schema/swagger-ui/', 'text/html');
    assert.match(String(page.headers['content-type']), /^text\/html/);
    assert.match(String(page.headers['set-cookie']), /^csrftoken=\w{48};/);
    assert.doesNotMatch(String(page.headers['content-security-policy']), /unsafe|\*|http/);
    const addresses = [...page.body.matchAll(/(?:src|href)="([^"]+)"/g)].map(([, address = '']) => address);
    assert.ok(addresses.length >= 4);
    for (const address of addresses) {
      const answer = await get(address);
      assert.equal(answer.statusCode, 200, address);
      assert.ok(answer.rawPayload.length > 100, address);
    }
  });

  test('of the package of Swagger UI nothing else is served', async () => {
    for (const path of ['package.json', 'swagger-ui-bundle.js.map', '../package.json', '%2e%2e/package.json'])
      assert.equal((await get(`/schema/swagger-ui/${path}`)).statusCode, 404, path);
  });

  test('the page to read names every operation and runs no script', async () => {
    const page = await get('/schema/redoc/', 'text/html');
    const { paths } = JSON.parse((await get('/schema/?format=json')).body);
    assert.equal(page.statusCode, 200);
    assert.doesNotMatch(page.body, /<script/);
    for (const path of Object.keys(paths)) assert.ok(page.body.includes(`</strong> ${path}</code>`), path);
  });

  test('the bare address is a 404 that shows a person the way', async () => {
    const page = await get('/', 'text/html');
    assert.equal(page.statusCode, 404);
    assert.match(page.body, /href="\/schema\/swagger-ui\/"/);
    assert.equal((await get('/', 'application/json')).statusCode, 404);
  });
});
