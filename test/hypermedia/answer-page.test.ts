import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { renderPage } from '../../src/hypermedia/answer-page.ts';
import { PAGE_SECURITY_POLICY } from '../../src/hypermedia/html.ts';

const ORIGIN = 'http://127.0.0.1:8000';

function page(content: unknown, path = '/api/v1/groups/1/', status = 200): string {
  return renderPage({ address: ORIGIN + path, status, content });
}

/** What a browser would make elements of, besides our own. */
const FOREIGN = /<(?:script|img|svg|iframe|object|base|b)\b|\son\w+=|javascript:/i;

test('nothing that was stored becomes an element, an attribute or a script', () => {
  const hostile = '"><script>alert(1)</script><img src=x onerror="x">&lt;b&gt;';
  const html = page({ id: 1, name: hostile, [hostile]: hostile, deep: [{ x: hostile }], long: hostile.repeat(20) });
  assert.doesNotMatch(html.replaceAll('&quot;', ''), /<(?:script|img)/);
  assert.ok(html.includes('&lt;script&gt;'));
});

test('any content at any address gives a page without foreign elements', () => {
  fc.assert(
    fc.property(fc.json(), fc.string(), fc.constantFrom(200, 400, 404), (json, path, status) => {
      const html = page(JSON.parse(json), `/${path}`, status);
      assert.ok(html.endsWith('</main></body></html>'));
      assert.doesNotMatch(html, /<script|<img/i);
    }),
  );
});

test('only addresses of the web can be followed', () => {
  const html = page({ id: 1, public_repo: 'https://example.org/a?b="c"', evil: 'javascript:alert(1)' });
  assert.doesNotMatch(html, /href="javascript/);
  assert.match(
    page({ id: 1, public_repo: 'https://example.org/a?b=1&c' }),
    /<a href="https:\/\/example\.org\/a\?b=1&amp;c">/,
  );
});

test('an error says its status, its text and the fields that are wrong', () => {
  const html = page({ name: ['This field is <required>.'] }, '/api/v1/groups/', 400);
  assert.match(html, /400 Bad Request/);
  assert.match(html, /This field is &lt;required&gt;\./);
  assert.match(
    page({ detail: 'No.' }, '/api/v1/groups/1/', 401),
    /href="\/api\/v1\/auth\/login\/\?next=%2Fapi%2Fv1%2Fgroups%2F1%2F"/,
  );
});

test('a list shows its place, the way on, its search and its links', () => {
  const group = {
    url: `${ORIGIN}/api/v1/groups/3/`,
    id: 3,
    name: 'scanners',
    users: `${ORIGIN}/api/v1/groups/3/users/`,
  };
  const html = page(
    {
      count: 12,
      next: `${ORIGIN}/api/v1/groups/?limit=5&offset=10`,
      previous: null,
      results: [group],
      queries: [{ href: `${ORIGIN}/api/v1/groups/search/`, rel: 'search', data: [{ name: 'name', value: '' }] }],
      collection_links: { admin: `${ORIGIN}/svc-admin/api/v1/` },
      template: { data: [{ name: 'name', value: '' }] },
    },
    '/api/v1/groups/?limit=5&offset=5',
  );
  assert.match(html, /6–6 of 12/);
  assert.match(html, /<a href="http:\/\/127\.0\.0\.1:8000\/api\/v1\/groups\/\?limit=5&amp;offset=10">Next →<\/a>/);
  assert.match(html, /<form class="search" method="get" action="[^"]*\/groups\/search\/">/);
  assert.match(html, /<a href="[^"]*\/groups\/3\/">#3 scanners<\/a>/);
  assert.match(html, /<a href="[^"]*\/groups\/3\/users\/">users<\/a>/);
  assert.match(html, /<a href="[^"]*\/svc-admin\/api\/v1\/">admin<\/a>/);
  assert.match(html, /Can be written: name/);
});

test('a long text is folded behind its beginning', () => {
  const log = 'line of a log\n'.repeat(100);
  const html = page({ id: 1, raw: log });
  assert.match(html, /<details><summary>line of a log line of a log/);
  assert.match(html, /1400 characters/);
});

test('the way back leads to the API, not above it', () => {
  const html = page({ id: 7 }, '/api/v1/plugins/instances/7/');
  assert.match(html, /api \/ <a href="\/api\/v1\/">v1<\/a> \/ <a href="\/api\/v1\/plugins\/">plugins<\/a>/);
});

test('a person who opens the bare address is told where to go', () => {
  const html = page({ detail: 'There is no such path.' }, '/', 404);
  for (const path of ['/api/v1/', '/schema/swagger-ui/', '/api/v1/auth/login/'])
    assert.ok(html.includes(`"${path}"`), path);
  assert.doesNotMatch(html, /There is no such path/);
});

test('the policy of pages lets no script run', () => {
  assert.match(PAGE_SECURITY_POLICY, /^default-src 'none'; style-src 'sha256-/);
  assert.doesNotMatch(PAGE_SECURITY_POLICY, /script-src|unsafe/);
  assert.doesNotMatch(page({ id: 1 }), FOREIGN);
});
