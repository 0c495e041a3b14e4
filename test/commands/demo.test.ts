/** The whole demo against the real server, as `npm run demo` runs it. */
import assert from 'node:assert/strict';
import { type ChildProcessByStdio, spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmod, mkdir, mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Readable } from 'node:stream';
import { text } from 'node:stream/consumers';
import { type TestContext, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import type { Summary } from '../../examples/plugins/pl-series-summary/src/summary.ts';
import { findContainerEngine } from '../../src/commands/demo/container-engine.ts';

const program = fileURLToPath(new URL('../../src/main.ts', import.meta.url));
const containers = await findContainerEngine(process.env);

interface Demo {
  readonly child: ChildProcessByStdio<null, Readable, Readable>;
  /** Where the server's data directory is made: empty again when all is cleaned up. */
  readonly temporary: string;
  readonly output: string;
  readonly end: Promise<{ exitCode: number | null; stderr: string }>;
}

test('interrupted, it ends with an error and leaves neither server nor data', async (context) => {
  const demo = await startDemo(context, 'process');
  let shown = '';
  for await (const piece of demo.child.stdout) {
    shown += piece;
    if (shown.includes('✓ Upload')) demo.child.kill('SIGINT');
  }
  const { exitCode, stderr } = await demo.end;
  assert.equal(exitCode, 1);
  assert.match(stderr, /interrupted/);
  await assertCleanedUp(demo, shown);
});

test('as processes: pictures and a summary are on disk', async (context) => {
  await assertWholeDemo(context, 'process');
});

test('in containers: the same', { skip: containers ? false : 'no container engine answers' }, async (context) => {
  await assertWholeDemo(context, 'containers');
});

async function assertWholeDemo(context: TestContext, engine: 'process' | 'containers'): Promise<void> {
  const demo = await startDemo(context, engine);
  const shown = await text(demo.child.stdout);
  const { exitCode, stderr } = await demo.end;
  assert.equal(exitCode, 0, stderr + shown);
  assert.ok(shown.includes(demo.output), 'says where the output is');
  const summary: Summary = JSON.parse(await readFile(join(demo.output, 'summary.json'), 'utf8'));
  assert.deepEqual([summary.series.length, summary.volumes.length, summary.problems.length], [4, 2, 0]);
  const listed = [...summary.series, ...summary.volumes].flatMap(({ pictures }) => pictures);
  const files = await readdir(demo.output, { recursive: true });
  assert.deepEqual(files.filter((file) => file.endsWith('.png')).sort(), listed.toSorted());
  await assertCleanedUp(demo, shown);
}

async function startDemo(context: TestContext, engine: string): Promise<Demo> {
  const folder = await mkdtemp(join(tmpdir(), 'demo-test-'));
  context.after(() => rm(folder, { recursive: true, force: true }));
  // PostgreSQL of a server that root starts runs as another user, who must be able to get there.
  await chmod(folder, 0o755);
  const temporary = join(folder, 'temporary');
  await mkdir(temporary);
  const output = join(folder, 'output');
  const child = spawn(process.execPath, [program, 'demo', '--engine', engine, '--output', output], {
    env: { ...process.env, TMPDIR: temporary },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  child.stdout.setEncoding('utf8');
  const stderr = text(child.stderr);
  const end = once(child, 'close').then(async () => ({ exitCode: child.exitCode, stderr: await stderr }));
  return { child, temporary, output, end };
}

async function assertCleanedUp({ temporary }: Demo, shown: string): Promise<void> {
  assert.deepEqual(await readdir(temporary), []);
  const [address] = /http:\/\/127\.0\.0\.1:\d+/.exec(shown) ?? [];
  assert.ok(address, 'shows the address');
  await assert.rejects(fetch(`${address}/readyz`));
}
