import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { resolveLink } from '../../src/compute/output-links.ts';

const entries = new Set(['a', 'd', 'd/b', 'd/e', 'd/e/c']);

function resolve(links: Record<string, string>, path = 'd/link') {
  return resolveLink(path, { links: new Map(Object.entries(links)), entries, names: ['/share/outgoing'] });
}

test('links lead inside, outside or nowhere', () => {
  const inside = (path: string) => ({ kind: 'inside', path });
  assert.deepEqual(resolve({ 'd/link': 'b' }), inside('d/b'));
  assert.deepEqual(resolve({ 'd/link': '../a' }), inside('a'));
  assert.deepEqual(resolve({ 'd/link': './e//c' }), inside('d/e/c'));
  assert.deepEqual(resolve({ 'd/link': '/share/outgoing/a' }), inside('a'));
  assert.deepEqual(resolve({ 'd/link': 'other', 'd/other': '../x/b', x: 'd' }), inside('d/b'));
  for (const target of ['../../a', '/etc/passwd', '/share/outgoing2/a', '/share/outgoing/../x', 'e/../../../a']) {
    assert.deepEqual(resolve({ 'd/link': target }), { kind: 'outside' }, target);
  }
  assert.deepEqual(resolve({ 'd/link': 'up/passwd', 'd/up': '/etc' }), { kind: 'outside' });
  for (const target of ['nothing', '.', '..', 'link', '/share/outgoing']) {
    assert.deepEqual(resolve({ 'd/link': target }), { kind: 'nothing' }, target);
  }
  assert.deepEqual(resolve({ 'd/link': 'one', 'd/one': 'link' }), { kind: 'nothing' });
});

test('whatever links there are, the answer comes and names an entry', () => {
  const name = fc.constantFrom('a', 'd', 'l', 'm', '..', '.', '');
  const target = fc.array(name, { maxLength: 5 }).map((parts) => parts.join('/'));
  fc.assert(
    fc.property(target, target, target, (first, second, third) => {
      const answer = resolve({ 'd/link': first, l: second, 'd/m': third });
      if (answer.kind === 'inside') assert.ok(entries.has(answer.path));
    }),
  );
});
