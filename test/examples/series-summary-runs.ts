/** Runs the example plugin as an engine would: its program, arguments, an input and an output folder. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import type { TestContext } from 'node:test';
import { fileURLToPath } from 'node:url';
import type { Summary } from '../../examples/plugins/pl-series-summary/src/summary.ts';

const program = fileURLToPath(new URL('../../examples/plugins/pl-series-summary/series-summary', import.meta.url));
export const exampleData = fileURLToPath(new URL('../../examples/data', import.meta.url));
export const fixtures = fileURLToPath(new URL('../fixtures/series-summary', import.meta.url));

export interface Outcome {
  readonly exitCode: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

export async function runProgram(words: readonly string[]): Promise<Outcome> {
  const child = spawn(process.execPath, [program, ...words], { stdio: ['ignore', 'pipe', 'pipe'] });
  const [stdout, stderr] = await Promise.all([text(child.stdout), text(child.stderr), once(child, 'close')]);
  return { exitCode: child.exitCode, stdout, stderr };
}

/** A folder that goes away with the test. */
export async function temporaryFolder(context: TestContext): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'series-summary-'));
  context.after(() => rm(folder, { recursive: true, force: true }));
  return folder;
}

export interface Run extends Outcome {
  readonly outputFolder: string;
  readonly summary: Summary;
}

/** Runs the plugin, which must write a summary. */
export async function runPlugin(
  context: TestContext,
  inputFolder: string,
  words: readonly string[] = [],
): Promise<Run> {
  const outputFolder = await temporaryFolder(context);
  const outcome = await runProgram([...words, inputFolder, outputFolder]);
  if (outcome.exitCode !== 0) throw new Error(`exit status ${outcome.exitCode}: ${outcome.stderr}`);
  const summary: Summary = JSON.parse(await readFile(join(outputFolder, 'summary.json'), 'utf8'));
  return { ...outcome, outputFolder, summary };
}
