/** The architecture as `docs/architecture.md` tells it: dependencies point one way, files stay small, paths that it names exist. */
import assert from 'node:assert/strict';
import { existsSync, globSync, readFileSync } from 'node:fs';
import { dirname, join, relative, resolve } from 'node:path';
import { test } from 'node:test';

const PROJECT = join(import.meta.dirname, '..');
const SOURCES = join(PROJECT, 'src');
const LARGEST_FILE_LINES = 400;

/** What each file needs when it runs; types alone do not count. */
function importsOf(file: string): readonly string[] {
  const statements = readFileSync(file, 'utf8').matchAll(/^import (?!type )[^;]*?from '(\.[^']+)'/gms);
  return [...statements].map((statement) => resolve(dirname(file), statement[1] ?? ''));
}

const files = globSync('**/*.ts', { cwd: SOURCES }).map((file) => join(SOURCES, file));
const imports = new Map(files.map((file) => [file, importsOf(file)]));

function folderOf(file: string): string | null {
  const parts = relative(SOURCES, file).split('/');
  return parts.length > 1 ? (parts[0] ?? null) : null;
}

/** A way from a node back to itself, or null. */
function findCycle(graph: ReadonlyMap<string, readonly string[]>): readonly string[] | null {
  const finished = new Set<string>();
  const visit = (node: string, way: readonly string[]): readonly string[] | null => {
    if (way.includes(node)) return [...way.slice(way.indexOf(node)), node];
    if (finished.has(node)) return null;
    for (const next of graph.get(node) ?? []) {
      const cycle = visit(next, [...way, node]);
      if (cycle) return cycle;
    }
    finished.add(node);
    return null;
  };
  for (const node of graph.keys()) {
    const cycle = visit(node, []);
    if (cycle) return cycle;
  }
  return null;
}

test('no file imports itself by a detour', () => {
  assert.ok(files.length > 100);
  assert.equal(findCycle(imports)?.map((file) => relative(SOURCES, file)) ?? null, null);
});

test('dependencies between folders point one way', () => {
  const folders = new Map<string, string[]>();
  for (const [file, targets] of imports) {
    const from = folderOf(file);
    if (from === null || from === 'commands') continue;
    const to = targets.map(folderOf).filter((folder) => folder !== null && folder !== from);
    folders.set(from, [...new Set([...(folders.get(from) ?? []), ...to.filter((folder) => folder !== null)])]);
  }
  assert.ok(folders.size >= 9);
  assert.equal(findCycle(folders), null);
});

test('no source file is larger than it should be', () => {
  const large = files
    .filter((file) => !file.includes('/generated'))
    .map((file) => [relative(SOURCES, file), readFileSync(file, 'utf8').split('\n').length] as const)
    .filter(([, lines]) => lines > LARGEST_FILE_LINES + 1);
  assert.deepEqual(large, []);
});

test('every file that the documentation names is there', () => {
  for (const page of [
    'docs/architecture.md',
    'README.md',
    'docs/deploying.md',
    'docs/differences.md',
    'bench/README.md',
  ]) {
    const text = readFileSync(join(PROJECT, page), 'utf8');
    const named = [...text.matchAll(/`((?:src|test|bench|examples|docs)\/[\w./-]+)`/g)].map((match) => match[1] ?? '');
    const missing = named.filter((path) => !existsSync(join(PROJECT, path)));
    assert.deepEqual(missing, [], page);
  }
});
