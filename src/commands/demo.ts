/**
 * `hypercube demo`: the main job as a user sees it, against a real server that lives as long as the demo. It uploads the
 * example images, makes an analysis from them, runs a plugin on it, and downloads what comes out.
 */
import { once } from 'node:events';
import { isAbsolute, relative } from 'node:path';
import { Client } from './demo/client.ts';
import { OutputFolder } from './demo/output-folder.ts';
import { formatBytes, formatSeconds, Screen } from './demo/screen.ts';
import { ServerProcess } from './demo/server-process.ts';
import {
  type Account,
  analyse,
  authorize,
  createUser,
  downloadOutput,
  type EngineChoice,
  generatePassword,
  listOutput,
  registerCompute,
  registerPlugin,
  uploadExamples,
} from './demo/steps.ts';
import { CommandError } from './failure.ts';

export interface DemoOptions {
  /** `auto`: containers when an engine answers on this machine, else processes. */
  readonly engine: EngineChoice;
  /** Where the output goes; a numbered folder beside it when it holds other files. */
  readonly output: string;
  /** Leave the server running until Ctrl-C. */
  readonly keep: boolean;
}

interface Stage {
  readonly options: DemoOptions;
  readonly screen: Screen;
  readonly administrator: Account;
  readonly user: Account;
  readonly signal: AbortSignal;
}

/** @throws when a step fails; the message says why. The server is ended and its data removed in any case. */
export async function runDemo(options: DemoOptions): Promise<void> {
  const interruption = new AbortController();
  const interrupt = () => interruption.abort(new CommandError('interrupted'));
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, interrupt);
  // Nobody reads on (`| head`): the server must not be left behind.
  process.stdout.on('error', interrupt);
  const stage: Stage = {
    options,
    screen: new Screen(process.stdout, process.env),
    administrator: { username: 'chris', password: generatePassword() },
    user: { username: 'demo', password: generatePassword() },
    signal: interruption.signal,
  };
  try {
    await play(stage);
  } finally {
    for (const signal of ['SIGINT', 'SIGTERM'] as const) process.off(signal, interrupt);
    process.stdout.off('error', interrupt);
  }
}

async function play(stage: Stage): Promise<void> {
  const { screen, options, signal } = stage;
  const startedAt = performance.now();
  screen.say(screen.style('bold', 'Hypercube demo: a real analysis of real images'));
  screen.say();
  const server = await screen.step('Server', async () => {
    const outcome = await ServerProcess.start(
      { administrator: stage.administrator, usesContainers: options.engine !== 'process' },
      signal,
    );
    return { words: `ready at ${outcome.baseUrl}`, outcome };
  });
  try {
    const output = await analyseExamples(stage, server.baseUrl);
    screen.say();
    screen.say(`Done in ${formatSeconds(performance.now() - startedAt)}. Look at ${screen.style('bold', output)}:`);
    screen.say('  summary.csv opens in a spreadsheet, pictures/*/contact-sheet.png in any viewer.');
    screen.say();
    if (options.keep) await keepRunning(stage, server.baseUrl);
  } catch (error) {
    // The first failure is the one to tell in the end; this one is shown as well.
    await server.stop().catch((stopError: Error) => screen.say(stopError.message));
    throw error;
  }
  await screen.step('Server', async () => {
    await server.stop();
    return { words: 'stopped, its data removed', outcome: undefined };
  });
}

/** @returns the folder with the output, as to be shown. */
async function analyseExamples(stage: Stage, baseUrl: string): Promise<string> {
  const { screen, options, signal } = stage;
  const anonymous = new Client({ baseUrl, signal });
  const plugin = await screen.step('Plugin', async (step) => {
    const admin = await authorize(anonymous, stage.administrator);
    const place = await registerCompute(admin, options.engine, step);
    const outcome = await registerPlugin(admin);
    return { words: `${outcome.name} ${outcome.version}, ${place}`, outcome };
  });
  const user = await screen.step('User', async () => {
    const outcome = await createUser(anonymous, stage.user);
    return { words: `${stage.user.username} has an account`, outcome };
  });
  const folder = await screen.step('Upload', async (step) => {
    const { folder: outcome, words } = await uploadExamples(user, stage.user.username, step);
    return { words, outcome };
  });
  const summary = await screen.step('Analysis', async (step) => {
    const outcome = await analyse(user, folder, plugin, screen, step);
    return { words: `feed ${outcome.feed_id} has finished`, outcome };
  });
  return screen.step('Output', async (step) => {
    const target = await OutputFolder.open(options.output);
    const files = await downloadOutput(user, summary, target, step);
    step.lines(listOutput(files));
    const total = files.reduce((sum, { sizeBytes }) => sum + sizeBytes, 0);
    const outcome = shownPath(target.path);
    return { words: `${files.length} files, ${formatBytes(total)}, in ${outcome}`, outcome };
  });
}

async function keepRunning({ screen, administrator, user, signal }: Stage, baseUrl: string): Promise<void> {
  screen.say(`The server stays at ${baseUrl}/api/v1/ until Ctrl-C.`);
  for (const { username, password } of [administrator, user]) screen.say(`  ${username.padEnd(6)} ${password}`);
  screen.say();
  if (!signal.aborted) await once(signal, 'abort');
}

function shownPath(path: string): string {
  const below = relative('.', path);
  return below.startsWith('..') || isAbsolute(below) ? path : `./${below}`;
}
