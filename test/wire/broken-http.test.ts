import assert from 'node:assert/strict';
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import type { Credentials } from '../helpers/server.ts';
import { type Bench, openBench } from '../instances/bench.ts';
import { contentsOf } from './refusals.ts';
import { send, sendRaw } from './send.ts';

let bench: Bench;
let alice: Credentials;
let credentials: string;
before(async () => {
  bench = await openBench();
  alice = await bench.user('alice');
  credentials = `Authorization: Basic ${Buffer.from(`${alice.username}:${alice.password}`).toString('base64')}\r\n`;
});
after(() => bench.close());

const HEAD = 'Host: localhost\r\nAccept: application/json\r\nConnection: close\r\n';
const TOKEN = 'POST /api/v1/auth-token/ HTTP/1.1\r\n';

interface Answered {
  readonly status: number;
  readonly head: string;
  readonly body: string;
}

async function raw(text: string | Uint8Array): Promise<Answered> {
  const answer = await sendRaw(bench.url, text);
  const end = answer.indexOf('\r\n\r\n');
  return { status: Number(answer.split(' ')[1]), head: answer.slice(0, end), body: answer.slice(end + 4) };
}

/** A request with a JSON body for the token route. */
const json = (body: string, more = ''): string =>
  `${TOKEN}${HEAD}Content-Type: application/json\r\nContent-Length: ${Buffer.byteLength(body)}\r\n${more}\r\n${body}`;

/** Each request with its status, and words that the refusal holds. */
const CASES: readonly (readonly [request: string, status: number, words: string])[] = [
  [`GET /api/v1/%ZZ/ HTTP/1.1\r\n${HEAD}\r\n`, 400, 'address'],
  [`GET /api/v1/%ff/ HTTP/1.1\r\n${HEAD}\r\n`, 400, 'address'],
  [`GET /api/v1/plugins/%00/ HTTP/1.1\r\n${HEAD}\r\n`, 404, 'path'],
  [`GET /api/v1/../../etc/passwd HTTP/1.1\r\n${HEAD}\r\n`, 404, 'path'],
  [`GET /api/v1/%2e%2e/%2e%2e/etc/passwd HTTP/1.1\r\n${HEAD}\r\n`, 404, 'path'],
  [`GET //evil.example/api/v1/ HTTP/1.1\r\n${HEAD}\r\n`, 404, 'path'],
  [`GET /api/v1/${'9'.repeat(5000)}/ HTTP/1.1\r\n${HEAD}\r\n`, 414, 'address'],
  [`GET /api/v1/?${'a=1&'.repeat(5000)} HTTP/1.1\r\n${HEAD}\r\n`, 431, 'headers'],
  [`GET /api/v1/ HTTP/1.1\r\n${HEAD}X-Long: ${'x'.repeat(20_000)}\r\n\r\n`, 431, 'headers'],
  [`FOO /api/v1/ HTTP/1.1\r\n${HEAD}\r\n`, 400, 'method'],
  [`OPTIONS * HTTP/1.1\r\n${HEAD}\r\n`, 404, 'path'],
  ['GET /api/v1/ HTTP/1.1\r\nConnection: close\r\n\r\n', 400, ''],
  ['GET /api/v1/ HTTP/1.1\r\nHost: a b<>\r\nAccept: application/json\r\nConnection: close\r\n\r\n', 400, 'Host'],
  ['GET /api/v1/ HTTP/1.1\nHost x\n\n', 400, 'HTTP'],
  ['\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03', 400, 'HTTP'],
  [`GET /api/v1/ HTTP/1.1\r\n${HEAD}X: a\0b\r\n\r\n`, 400, 'HTTP'],
  [`${TOKEN}${HEAD}Content-Length: x\r\n\r\n`, 400, 'Content-Length'],
  [`${TOKEN}${HEAD}Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n`, 400, 'Transfer-Encoding'],
  [`${TOKEN}${HEAD}Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n{}\r\n0\r\n\r\n`, 400, ''],
  [json('\x1f\x8b', 'Content-Encoding: gzip\r\n'), 415, 'Content-Encoding'],
  [json('{}', 'Content-Encoding: br\r\n'), 415, 'Content-Encoding'],
  [`GET /api/v1/ HTTP/1.1\r\n${HEAD}Accept: ${'a/'.repeat(3000)}\r\n\r\n`, 200, 'count'],
  [`GET /api/v1/ HTTP/1.1\r\nHost: x\r\nConnection: close\r\nAccept: image/png\r\n\r\n`, 406, 'Accept'],
  [`GET /api/v1/ HTTP/1.1\r\nHost: x\r\nConnection: close\r\nAccept: ;q=x,,,/;;\r\n\r\n`, 406, 'Accept'],
  [`GET /api/v1/ HTTP/1.1\r\n${HEAD}Cookie: sessionid=%ZZ; =; ;;__proto__=1; sessionid=\xff\r\n\r\n`, 200, 'count'],
  [`GET /api/v1/ HTTP/1.1\r\n${HEAD}Expect: something\r\n\r\n`, 200, 'count'],
  [`GET /api/v1/ HTTP/1.1\r\n${HEAD}Authorization: Token\r\n\r\n`, 401, 'token'],
  [`GET /api/v1/ HTTP/1.1\r\n${HEAD}Authorization: Token \xff\xfe\r\n\r\n`, 401, 'token'],
  [`GET /api/v1/ HTTP/1.1\r\n${HEAD}Authorization: Token ${'a'.repeat(40)}\r\n\r\n`, 401, 'token'],
  [`GET /api/v1/ HTTP/1.1\r\n${HEAD}Authorization: Basic\r\n\r\n`, 401, 'Basic'],
  [`GET /api/v1/ HTTP/1.1\r\n${HEAD}Authorization: Basic !!!\r\n\r\n`, 401, 'Basic'],
  [`GET /api/v1/ HTTP/1.1\r\n${HEAD}Authorization: Basic ${btoa('nocolon')}\r\n\r\n`, 401, 'Basic'],
  [`GET /api/v1/ HTTP/1.1\r\n${HEAD}Authorization: Basic ${btoa('a\0b:\0')}\r\n\r\n`, 401, 'wrong'],
  [`GET /api/v1/ HTTP/1.1\r\n${HEAD}Authorization: Basic ${btoa('\xff\xfe:x')}\r\n\r\n`, 401, 'wrong'],
];

test('broken and odd requests are refused in one shape, with all headers', async () => {
  for (const [request, status, words] of CASES) {
    const answer = await raw(Buffer.from(request, 'latin1'));
    const shown = `${request.slice(0, 120)} → ${answer.head.slice(0, 60)} ${answer.body.slice(0, 200)}`;
    assert.equal(answer.status, status, shown);
    assert.match(answer.head, /x-content-type-options: nosniff/i, shown);
    assert.match(answer.head, /x-frame-options: DENY/i, shown);
    assert.ok(answer.body.includes(words), shown);
    if (status >= 400) assert.match(answer.body, /"(detail|message)":"/, shown);
  }
});

test('a method that nothing offers is 405 with Allow on every kind of path', async () => {
  for (const method of ['TRACE', 'PATCH', 'PROPFIND', 'LOCK', 'MKCOL', 'REPORT', 'PURGE', 'SEARCH'])
    for (const path of ['/api/v1/', '/api/v1/plugins/1/', '/schema/']) {
      const { status, headers } = await send(bench.url, method, path);
      assert.deepEqual([status, headers.allow?.startsWith('GET')], [405, true], `${method} ${path}`);
    }
  assert.equal((await send(bench.url, 'TRACE', '/api/v1/none/')).status, 404);
  assert.equal((await send(bench.url, 'QUERY', '/api/v1/')).status, 400);
});

test('a body that is too large is refused, whether its size was announced or not', async () => {
  const large = `{"username":"${'x'.repeat(11 * 1024 * 1024)}"}`;
  const headers = { 'content-type': 'application/json', accept: 'application/json' };
  assert.equal((await send(bench.url, 'POST', '/api/v1/auth-token/', { headers, body: large })).status, 413);
  const chunked = { ...headers, 'transfer-encoding': 'chunked' };
  assert.equal((await send(bench.url, 'POST', '/api/v1/auth-token/', { headers: chunked, body: large })).status, 413);
  const form = new FormData();
  for (let index = 0; index < 12; index += 1) form.set(`field${index}`, 'x'.repeat(1024 * 1024));
  assert.equal((await bench.request('POST', '/api/v1/auth-token/', { multipart: form })).status, 413);
});

const field = (name: string, value: string): string =>
  `--x\r\nContent-Disposition: form-data; name="${name}"\r\n\r\n${value}\r\n`;
const part = (name: string, value: string, filename = 'a.txt'): string =>
  `--x\r\nContent-Disposition: form-data; name="${name}"; filename="${filename}"\r\n\r\n${value}`;

function upload(body: string, length = Buffer.byteLength(body), type = 'multipart/form-data; boundary=x'): string {
  return `POST /api/v1/userfiles/ HTTP/1.1\r\n${HEAD}${credentials}Content-Type: ${type}\r\nContent-Length: ${length}\r\n\r\n${body}`;
}

test('a broken upload is refused and leaves nothing', async () => {
  const to = field('upload_path', `home/${alice.username}/uploads/broken.txt`);
  const end = '\r\n--x--\r\n';
  const bodies = [
    to + part('fname', 'content'),
    part('fname', 'content') + end,
    `${to}--x\r\nnothing like a header\r\n\r\ncontent${end}`,
    `${to}--x\r\nContent-Disposition: form-data; filename="a"\r\n\r\ncontent${end}`,
    to + part('__proto__', 'content') + end,
    field('__proto__', 'x') + to + part('fname', 'content') + end,
    `${to}${part('fname', 'one')}\r\n${part('fname', 'two')}${end}`,
    to + field('fname', 'no file') + end,
    field('upload_path', '') + part('fname', 'content') + end,
    ...['\0', '..', '../../x', '/etc/passwd', 'home/x/uploads/y', `home/${alice.username}/uploads/../../z`].map(
      (path) => field('upload_path', path) + part('fname', 'content') + end,
    ),
    field('upload_path', `home/${alice.username}/uploads/${'n'.repeat(300)}`) + part('fname', 'content') + end,
    field('upload_path', `home/${alice.username}/uploads/%2e%2e/x\u0007`) + part('fname', 'content') + end,
    'garbage',
    '--x',
    '--x--',
  ];
  const before = await contentsOf(bench);
  for (const body of bodies) {
    const answer = await raw(upload(body));
    assert.equal(answer.status, 400, `${body} → ${answer.body}`);
    assert.deepEqual(await contentsOf(bench), before, body);
  }
  for (const type of ['multipart/form-data', 'multipart/form-data; boundary=', 'multipart/mixed; boundary=x']) {
    const answer = await raw(upload(to + part('fname', 'content') + end, undefined, type));
    assert.ok([400, 415].includes(answer.status), `${type} → ${answer.status}`);
  }
  assert.deepEqual(await contentsOf(bench), before);
});

test('a file name cannot bring headers or folders along', async () => {
  const path = `home/${alice.username}/uploads/named.txt`;
  for (const filename of ['a\r\nX-Injected: y', '../../x', '/etc/passwd', '%2e%2e%2fx', 'C:\\x']) {
    const body = `${field('upload_path', path)}${part('fname', 'content', filename)}\r\n--x--\r\n`;
    const answer = await raw(upload(body));
    assert.doesNotMatch(answer.head, /injected/i);
    if (answer.status === 201) assert.match(answer.body, /"fname":"home\/[^/]+\/uploads\/named[^/"]*"/);
    else assert.equal(answer.status, 400, answer.body);
  }
});

async function untilGone(): Promise<void> {
  const incoming = join(bench.storage, '.incoming');
  for (let attempt = 0; attempt < 100; attempt += 1) {
    if ((await readdir(incoming, { recursive: true })).length === 0) return;
    await pause(50);
  }
  assert.deepEqual(await readdir(incoming, { recursive: true }), []);
}

test('a client that goes away in the middle leaves nothing, and the server goes on', async () => {
  const before = await contentsOf(bench);
  const to = field('upload_path', `home/${alice.username}/uploads/half.txt`);
  const whole = upload(to + part('fname', 'z'.repeat(500_000)), 50_000_000);
  for (const length of [
    whole.length,
    whole.length - 400_000,
    whole.indexOf('half.txt'),
    whole.indexOf('\r\n\r\n') + 4,
  ]) {
    await sendRaw(bench.url, whole.slice(0, length), 200);
    await untilGone();
    assert.deepEqual(await contentsOf(bench), before);
  }
  await sendRaw(bench.url, json('{"username":').replace(/Content-Length: \d+/, 'Content-Length: 5000'), 100);
  assert.equal((await bench.request('GET', '/api/v1/', { as: alice })).status, 200);
});

test('requests that meet each other are told so, and nothing fails', async () => {
  for (let round = 0; round < 5; round += 1) {
    const { json: group } = await bench.request('POST', '/api/v1/groups/', {
      as: bench.admin,
      json: { name: `g${round}` },
    });
    const path = `/api/v1/groups/${group.id}/`;
    const member = { as: bench.admin, json: { username: alice.username } };
    const answers = await Promise.all([
      ...Array.from({ length: 4 }, () => bench.request('DELETE', path, { as: bench.admin })),
      ...Array.from({ length: 4 }, () => bench.request('POST', `${path}users/`, member)),
    ]);
    for (const { status, text } of answers) assert.ok([201, 204, 400, 404, 409].includes(status), `${status} ${text}`);
    assert.equal(answers.filter(({ status }) => status === 204).length, 1);
  }
});

test('a bad range is ignored or 416, and never more than the file', async () => {
  const multipart = new FormData();
  multipart.set('upload_path', `home/${alice.username}/uploads/range.txt`);
  multipart.set('fname', new Blob(['0123456789']), 'x');
  const { json: file } = await bench.request('POST', '/api/v1/userfiles/', { as: alice, multipart });
  for (const [range, status] of [
    ['bytes=5-2', 200],
    ['bytes=a-b', 200],
    ['bytes=-', 200],
    ['lines=1-2', 200],
    ['bytes=0-1,3-4', 200],
    [`bytes=${'9'.repeat(400)}-`, 416],
    ['bytes=-0', 416],
    [`bytes=0-${'9'.repeat(400)}`, 206],
    [`bytes=-${'9'.repeat(400)}`, 206],
  ] as const) {
    const answer = await bench.request('GET', String(file.file_resource), { as: alice, headers: { range } });
    assert.equal(answer.status, status, range);
    assert.ok(answer.status === 416 || answer.text === '0123456789', range);
  }
});
