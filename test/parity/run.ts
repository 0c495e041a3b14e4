/**
 * Plays the recorded steps of the reference against a server of its own and compares what fails with two lists:
 * `differences.json`, steps that differ on purpose, and `pending.json`, what is not expected to pass yet.
 * A step that fails unlisted, and a listed one that passes, both make the run fail: the lists only ever tell the truth.
 *
 *   node test/parity/run.ts <folder of run.mjs> [scenario…]
 */
import { spawn } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { createInterface } from 'node:readline';
import { type ParityServer, startParityServer } from './server.ts';

interface Lists {
  /** Reason by `scenario › step`. */
  readonly differences: ReadonlyMap<string, string>;
  readonly pendingSteps: ReadonlyMap<string, string>;
  /** Reason by scenario, for those that are not played at all: on purpose, or not yet. */
  readonly unplayed: ReadonlyMap<string, string>;
}

function readReasons(file: string, member: string): ReadonlyMap<string, string> {
  const content: unknown = JSON.parse(readFileSync(join(import.meta.dirname, file), 'utf8'));
  const group =
    typeof content === 'object' && content !== null
      ? Object.entries(content).find(([name]) => name === member)?.[1]
      : {};
  return new Map(Object.entries(group ?? {}).map(([step, reason]) => [step, String(reason)]));
}

function readLists(): Lists {
  return {
    differences: readReasons('differences.json', 'steps'),
    pendingSteps: readReasons('pending.json', 'steps'),
    unplayed: new Map([...readReasons('differences.json', 'scenarios'), ...readReasons('pending.json', 'scenarios')]),
  };
}

interface Result {
  readonly failed: ReadonlySet<string>;
  readonly steps: number;
  readonly stoppedEarly: string | null;
}

/** Runs one scenario and reads what it prints: a line `✗ scenario › step` for each step that differs. */
async function play(folder: string, scenario: string, server: ParityServer): Promise<Result> {
  const { admin } = server;
  const options = [
    '--base',
    server.url,
    '--admin',
    `${admin.username}:${admin.password}`,
    '--admin-prefix',
    '/svc-admin/',
    '--only',
    scenario,
    '--verbose',
  ];
  const child = spawn(process.execPath, [join(folder, 'run.mjs'), ...options], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const failed = new Set<string>();
  let steps = 0;
  let stoppedEarly: string | null = null;
  for await (const line of createInterface({ input: child.stdout })) {
    const failure = /^ {2}✗ (.* › .*)$/.exec(line);
    const summary = /^[✓✗] \S+: \d+\/(\d+) steps/.exec(line);
    const stopped = /^ {2}! (.*)$/.exec(line);
    if (failure?.[1]?.startsWith(`${scenario} › `)) failed.add(failure[1]);
    if (summary) steps = Number(summary[1]);
    if (stopped) stoppedEarly = stopped[1] ?? '';
    if (process.env.PARITY_VERBOSE) console.log(line);
  }
  return { failed, steps, stoppedEarly };
}

function scenariosIn(folder: string): readonly string[] {
  return readdirSync(join(folder, 'scenarios'))
    .filter((file) => file.endsWith('.mjs'))
    .map((file) => file.slice(0, -'.mjs'.length))
    .sort();
}

/** Some differences depend on who is faster; they may show or not. */
function isTolerated(reason: string | undefined): boolean {
  return reason?.startsWith('sometimes: ') ?? false;
}

/** Prints what does not agree with the lists; gives the number of such steps. */
function compare(scenario: string, result: Result, lists: Lists): number {
  const listed = (step: string): boolean => lists.differences.has(step) || lists.pendingSteps.has(step);
  const unexpected = [...result.failed].filter((step) => !listed(step));
  const all = [...lists.differences.keys(), ...lists.pendingSteps.keys()].filter((step) =>
    step.startsWith(`${scenario} › `),
  );
  const passing = all.filter((step) => !result.failed.has(step) && !isTolerated(lists.differences.get(step)));
  for (const step of unexpected) console.log(`  ✗ ${step}\n      differs from the reference and is on no list`);
  for (const step of passing) console.log(`  ✗ ${step}\n      passes: take it off its list`);
  if (result.stoppedEarly !== null && unexpected.length > 0) console.log(`  ! stopped early: ${result.stoppedEarly}`);
  const good = result.steps - result.failed.size;
  console.log(
    `${unexpected.length + passing.length > 0 ? '✗' : '✓'} ${scenario}: ${good} of ${result.steps} steps as the reference, ${all.length} listed`,
  );
  return unexpected.length + passing.length;
}

async function main(): Promise<void> {
  const [folder = '../shared/parity', ...wanted] = process.argv.slice(2);
  const lists = readLists();
  const scenarios = scenariosIn(resolve(folder)).filter((name) =>
    wanted.length > 0 ? wanted.includes(name) : !lists.unplayed.has(name),
  );
  const server = await startParityServer(resolve(folder));
  let wrong = 0;
  let steps = 0;
  try {
    for (const scenario of scenarios) {
      const result = await play(resolve(folder), scenario, server);
      steps += result.steps;
      wrong += compare(scenario, result, lists);
    }
  } finally {
    await server.close();
  }
  for (const [scenario, reason] of lists.unplayed) console.log(`– ${scenario}: not played: ${reason}`);
  console.log(`${steps - wrong} passed, ${wrong} failed`);
  if (wrong > 0 || steps === 0) process.exitCode = 1;
}

await main();
