import assert from 'node:assert/strict';
import test from 'node:test';
import { pino } from 'pino';
import { logOptions } from '../src/log.ts';

function logged(write: (log: pino.Logger) => void): string {
  let text = '';
  const add = (line: string): void => {
    text += line;
  };
  write(pino(logOptions('info'), { write: add }));
  return text;
}

test('secrets are not logged: at the top, in headers, in errors, under any case', () => {
  const error = Object.assign(new Error('refused'), {
    config: { headers: { Authorization: 'Token s3cret' }, data: { password: 's3cret' } },
  });
  const text = logged((log) => {
    log.info({ token: 's3cret', headers: { Cookie: 's3cret', 'x-csrftoken': 's3cret' } }, 'request');
    log.warn({ compute_password: 's3cret' });
    log.error({ err: error }, 'failed');
    log.error({ request: { headers: { authorization: 's3cret' } } });
    log.error(error);
  });
  assert.doesNotMatch(text, /s3cret/);
  assert.match(text, /"token":"\[not logged\]"/);
});

test('everything else is logged as it is', () => {
  const date = new Date(0);
  const text = logged((log) => {
    log.info({ path: '/api/v1/', status: 200, list: [{ a: 1 }], deep: { a: { b: null } }, date }, 'request');
    log.error({ err: new TypeError('broken') }, 'failed');
  });
  const [first = '', second = ''] = text.split('\n');
  const { path, status, list, deep, date: written, msg } = JSON.parse(first);
  assert.deepEqual([path, status, list, deep, msg], ['/api/v1/', 200, [{ a: 1 }], { a: { b: null } }, 'request']);
  assert.equal(written, '1970-01-01T00:00:00.000Z');
  const { err } = JSON.parse(second);
  assert.equal(err.type, 'TypeError');
  assert.equal(err.message, 'broken');
  assert.match(err.stack, /log\.test\.ts/);
});

test('what holds itself does not end the server', () => {
  const circle: Record<string, unknown> = { name: 'circle' };
  circle.self = circle;
  assert.match(
    logged((log) => log.info({ circle })),
    /"name":"circle"/,
  );
});
