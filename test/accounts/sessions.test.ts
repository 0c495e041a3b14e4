import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import type { Answer } from '../helpers/client.ts';
import { type Bench, openBench } from '../instances/bench.ts';

let bench: Bench;
before(async () => {
  bench = await openBench();
});
after(() => bench.close());

const LOGIN = '/api/v1/auth/login/';

/** Keeps cookies and fills in forms, as a browser does. */
class Browser {
  readonly cookies = new Map<string, string>();

  async send(method: string, path: string, form?: Readonly<Record<string, string>>, more = {}): Promise<Answer> {
    const cookie = [...this.cookies].map(([name, value]) => `${name}=${value}`).join('; ');
    const headers = { ...(cookie && { cookie }), ...more };
    const answer = await bench.request(method, path, { headers, ...(form && { form }) });
    for (const line of answer.headers.getSetCookie()) {
      const [, name = '', value = ''] = /^([^=]+)=([^;]*)/.exec(line) ?? [];
      if (value === '') this.cookies.delete(name);
      else this.cookies.set(name, value);
    }
    return answer;
  }

  /** Opens the page, and sends its form with what the page put into it. */
  async logIn(fields: Readonly<Record<string, string>>, page = LOGIN): Promise<Answer> {
    const { text } = await this.send('GET', page);
    const hidden = [...text.matchAll(/type="hidden" name="([^"]+)" value="([^"]*)"/g)];
    const filled = Object.fromEntries(hidden.map(([, name = '', value = '']) => [name, value]));
    return this.send('POST', LOGIN, { ...filled, ...fields });
  }

  async isKnown(): Promise<boolean> {
    return (await this.send('GET', '/api/v1/downloadtokens/')).status === 200;
  }
}

test('a wrong password shows the form again, without a session', async () => {
  const user = await bench.user('wrong');
  const browser = new Browser();
  const answer = await browser.logIn({ username: user.username, password: 'not it' });
  assert.deepEqual([answer.status, /role="alert"/.test(answer.text)], [200, true]);
  assert.equal(browser.cookies.has('sessionid'), false);
  assert.ok(!answer.text.includes('not it'));
});

test('a form without its proof, or with that of another page, begins no session', async () => {
  const { username, password } = await bench.user('forged');
  const [browser, attacker] = [new Browser(), new Browser()];
  assert.equal((await browser.send('POST', LOGIN, { username, password })).status, 403);
  await attacker.send('GET', LOGIN);
  const csrfmiddlewaretoken = attacker.cookies.get('csrftoken') ?? '';
  assert.equal((await browser.send('POST', LOGIN, { username, password, csrfmiddlewaretoken })).status, 403);
  await browser.send('GET', LOGIN);
  assert.equal((await browser.send('POST', LOGIN, { username, password, csrfmiddlewaretoken })).status, 403);
  assert.equal(browser.cookies.has('sessionid'), false);
});

test('a session begins with the form, and ends with the log-out', async () => {
  const user = await bench.user('session');
  const browser = new Browser();
  const answer = await browser.logIn(user.id ? { username: user.username, password: user.password } : {});
  assert.deepEqual([answer.status, answer.headers.get('location')], [302, '/api/v1/']);
  const cookie = answer.headers.getSetCookie().find((line) => line.startsWith('sessionid=')) ?? '';
  assert.match(cookie, /HttpOnly/i);
  assert.match(cookie, /SameSite=Lax/i);
  assert.equal(await browser.isKnown(), true);
  const session = browser.cookies.get('sessionid') ?? '';
  assert.equal((await browser.send('POST', '/api/v1/auth/logout/', {})).status, 403, 'not without its proof');
  assert.equal(await browser.isKnown(), true);
  const csrfmiddlewaretoken = browser.cookies.get('csrftoken') ?? '';
  assert.equal((await browser.send('POST', '/api/v1/auth/logout/', { csrfmiddlewaretoken })).status, 302);
  browser.cookies.set('sessionid', session);
  assert.equal(await browser.isKnown(), false, 'the session has ended, not only its cookie');
});

test('writing takes the proof of this very session', async () => {
  const [one, other] = [await bench.user('proof'), await bench.user('others')];
  const [browser, stranger] = [new Browser(), new Browser()];
  await browser.logIn({ username: one.username, password: one.password });
  await stranger.logIn({ username: other.username, password: other.password });
  const write = async (proof: string): Promise<number> =>
    (await browser.send('POST', '/api/v1/downloadtokens/', undefined, { 'x-csrftoken': proof })).status;
  const own = browser.cookies.get('csrftoken') ?? '';
  const foreign = stranger.cookies.get('csrftoken') ?? '';
  for (const wrong of ['', 'x', own.slice(0, -1), `${own}0`, foreign]) assert.equal(await write(wrong), 403, wrong);
  browser.cookies.set('csrftoken', foreign);
  assert.equal(await write(foreign), 403, 'a cookie that was planted does not help');
  browser.cookies.set('csrftoken', own);
  assert.equal(await write(own), 201);
  const form = await browser.send('POST', '/api/v1/downloadtokens/', { csrfmiddlewaretoken: own });
  assert.equal(form.status, 201);
});

test('the log-in leads on to own paths only', async () => {
  const { username, password } = await bench.user('onward');
  const goesTo = async (next: string): Promise<string | null> =>
    (await new Browser().logIn({ username, password, next })).headers.get('location');
  for (const next of [
    'https://evil.example/',
    '//evil.example/',
    '/\\evil.example',
    '/.//evil.example/',
    '/..//evil.example/',
    '\\\\evil.example',
    'javascript:alert(1)',
    '/\t/evil.example',
    '/\r\nX: y',
    '',
  ])
    assert.equal(await goesTo(next), '/api/v1/', next);
  assert.equal(await goesTo('/api/v1/plugins/?name=x'), '/api/v1/plugins/?name=x');
  for (const next of ['/漢字/é', '/\ud800', '/%00']) assert.match((await goesTo(next)) ?? '', /^\/[\x21-\x7e]*$/, next);
  const page = await bench.request('GET', `${LOGIN}?next=%22%3E%3Cscript%3E`);
  assert.ok(!page.text.includes('"><script>'));
});

test('only staff gets in by the page of the administration', async () => {
  const user = await bench.user('nostaff');
  const browser = new Browser();
  const { text } = await browser.send('GET', '/svc-admin/login/');
  const csrfmiddlewaretoken = /name="csrfmiddlewaretoken" value="([^"]*)"/.exec(text)?.[1] ?? '';
  const { username, password } = user;
  const form = { username, password, csrfmiddlewaretoken };
  assert.equal((await browser.send('POST', '/svc-admin/login/', form)).status, 200);
  assert.equal(browser.cookies.has('sessionid'), false);
});
