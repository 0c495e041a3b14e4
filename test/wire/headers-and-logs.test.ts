import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { SECURITY_HEADERS } from '../../src/security-headers.ts';
import { type Answer, clientOf, type Request, signUp } from '../helpers/client.ts';
import { startServer, type TestServer } from '../helpers/server.ts';

const COMPUTE_PASSWORD = 'compute-secret-4711';
const COMPUTE_TOKEN = 'compute-token-4712';

let server: TestServer;
let request: Request;
let printed = '';
before(async () => {
  server = await startServer({ HYPERCUBE_LOG_LEVEL: 'trace', HYPERCUBE_LOG_FORMAT: 'json' });
  request = clientOf(server);
  printed = server.output();
  for (const stream of [server.process.stdout, server.process.stderr])
    stream?.on('data', (text: string) => {
      printed += text;
    });
});
after(() => server.close());

function checkHeaders(answer: Answer, what: string): void {
  for (const [name, value] of Object.entries(SECURITY_HEADERS))
    assert.equal(answer.headers.get(name), value, `${what}: ${name}`);
  const type = answer.headers.get('content-type') ?? '';
  if (type.includes('html'))
    assert.match(answer.headers.get('content-security-policy') ?? '', /default-src 'none'/, what);
}

test('every kind of answer has the security headers, and no log has a secret', async () => {
  const user = await signUp(request, 'secretive');
  const { json } = await request('POST', '/api/v1/auth-token/', { json: user });
  const token = String(json.token);
  const download = await request('POST', '/api/v1/downloadtokens/', { token, json: {} });
  const downloadToken = String(download.json.token);
  const files = await request('GET', '/api/v1/userfiles/', { token });
  const file = String(files.json.results?.[0]?.file_resource);
  const page = await request('GET', '/api/v1/auth/login/');
  const csrftoken = /csrftoken=([^;]+)/.exec(page.headers.get('set-cookie') ?? '')?.[1] ?? '';
  const form = { username: user.username, password: user.password, csrfmiddlewaretoken: csrftoken };
  const logIn = await request('POST', '/api/v1/auth/login/', { form, headers: { cookie: `csrftoken=${csrftoken}` } });
  const session = /sessionid=([^;]+)/.exec(logIn.headers.getSetCookie().join())?.[1] ?? '';
  const resource = {
    ...{ name: 'remote', compute_url: 'http://127.0.0.1:9/api/v1/', compute_user: 'someone' },
    ...{ compute_password: COMPUTE_PASSWORD, compute_auth_token: COMPUTE_TOKEN },
  };
  const created = await request('POST', '/svc-admin/api/v1/computeresources/', { as: server.admin, json: resource });
  assert.equal(created.status, 201, created.text);
  assert.ok(!created.text.includes(COMPUTE_PASSWORD) && !created.text.includes(COMPUTE_TOKEN));
  const wrong = 'a-wrong-password-4713';
  const multipart = new FormData();
  multipart.set('upload_path', `home/${user.username}/uploads/logged.txt`);
  multipart.set('fname', new Blob(['content']), 'x');
  const cookies = { cookie: `sessionid=${session}; csrftoken=${csrftoken}`, 'x-csrftoken': csrftoken };
  const html = { headers: { accept: 'text/html' } };
  const answers: Readonly<Record<string, Answer>> = {
    ...{ page, logIn, download, files, created },
    'a page': await request('GET', '/api/v1/', { token, ...html }),
    'a page of an error': await request('GET', '/api/v1/userfiles/', html),
    'an upload': await request('POST', '/api/v1/userfiles/', { token, multipart, headers: cookies }),
    'an unknown path': await request('GET', '/nowhere/'),
    'an unknown path as a page': await request('GET', '/nowhere/', html),
    'an unreadable path': await request('GET', '/api/v1/%ff/'),
    'a redirection': await request('GET', '/svc-admin/'),
    'a download': await request('GET', `${file}?download_token=${downloadToken}`),
    'a download that is refused': await request('GET', `${file}?download_token=${downloadToken}`),
    'a download with a session': await request('GET', file, { headers: { cookie: `sessionid=${session}` } }),
    options: await request('OPTIONS', '/api/v1/users/'),
    'a preflight': await request('OPTIONS', '/x', {
      headers: { origin: 'http://a.example', 'access-control-request-method': 'GET' },
    }),
    'a method that is not offered': await request('PATCH', '/api/v1/users/'),
    'a type that is not understood': await request('POST', '/api/v1/users/', {
      body: 'x',
      headers: { 'content-type': 'text/plain' },
    }),
    'wrong fields': await request('POST', '/api/v1/users/', { json: { username: 'x', password: wrong } }),
    'a wrong password': await request('GET', '/api/v1/', { as: { username: user.username, password: wrong } }),
    'a wrong log-in': await request('POST', '/api/v1/auth-token/', {
      json: { username: user.username, password: wrong },
    }),
    health: await request('GET', '/healthz'),
    readiness: await request('GET', '/readyz'),
    metrics: await request('GET', '/metrics'),
    'the description': await request('GET', '/schema/'),
    'a viewer': await request('GET', '/schema/swagger-ui/', html),
    'a file of the viewer': await request('GET', '/schema/swagger-ui/start.js', html),
    'a new password': await request('PUT', `/api/v1/users/${user.id}/`, {
      token,
      json: { email: `${user.username}@example.org`, password: `${user.password}-2` },
    }),
    'a body that breaks off': await request('POST', '/api/v1/users/', {
      body: `{"password":"${wrong}"`,
      headers: { 'content-type': 'application/json' },
    }),
  };
  for (const [what, answer] of Object.entries(answers)) {
    assert.ok(answer.status < 500, `${what}: ${answer.status} ${answer.text}`);
    checkHeaders(answer, what);
  }
  assert.ok(printed.includes('"path":"/api/v1/auth-token/"'), 'the log was captured');
  const secrets = [
    user.password,
    wrong,
    token,
    downloadToken,
    session,
    csrftoken,
    COMPUTE_PASSWORD,
    COMPUTE_TOKEN,
    server.admin.password,
  ];
  for (const secret of secrets) {
    assert.ok(secret.length >= 8, 'a secret was made');
    const at = printed.indexOf(secret);
    assert.equal(at, -1, `the log holds ${secret}: ${printed.slice(Math.max(0, at - 200), at + 100)}`);
    const encoded = Buffer.from(`${user.username}:${secret}`).toString('base64');
    assert.ok(!printed.includes(encoded), 'Basic credentials');
  }
});
