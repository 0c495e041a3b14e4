/** The steps of the demo, each a function that does its part through the API. */
import { randomBytes } from 'node:crypto';
import { readdir, readFile, stat } from 'node:fs/promises';
import { dirname, join, relative, sep } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { ensureImage, ImageNotBuilt } from '../../../examples/plugins/pl-series-summary/image.ts';
import { CommandError } from '../failure.ts';
import type { Client, Page } from './client.ts';
import { type ContainerEngine, findContainerEngine } from './container-engine.ts';
import type { OutputFolder } from './output-folder.ts';
import { programLog } from './program-log.ts';
import { formatBytes, progressBar, type Screen, type Step } from './screen.ts';
import { drawTree, type Instance } from './tree.ts';

export type EngineChoice = 'auto' | 'process' | 'containers';

/** A step of the demo did not come to its end; the message says why. */
export class DemoFailed extends CommandError {
  override readonly name = 'DemoFailed';
}

export interface Account {
  readonly username: string;
  readonly password: string;
}

interface Plugin {
  readonly id: number;
  readonly name: string;
  readonly version: string;
}

interface UserFile {
  readonly fname: string;
  readonly fsize: number;
  readonly file_resource: string;
}

const examples = fileURLToPath(new URL('../../../examples', import.meta.url));
const programs = join(examples, 'plugins');
const descriptorPath = join(programs, 'pl-series-summary', 'pl-series-summary.json');
const COMPUTE_NAME = 'demo';
const POLL_MILLISECONDS = 150;
const ANALYSIS_LIMIT_SECONDS = 600;
const SHOWN_LOG_LINES = 20;

export function generatePassword(): string {
  return randomBytes(12).toString('base64url');
}

export async function authorize(client: Client, account: Account): Promise<Client> {
  const { token } = await client.post<{ token: string }>('/api/v1/auth-token/', { ...account });
  return client.as(`Token ${token}`);
}

/** Registers the place where the plugin shall run. @returns what that is, in words. */
export async function registerCompute(admin: Client, choice: EngineChoice, step: Step): Promise<string> {
  const engine = choice === 'process' ? null : await prepareContainers(choice, step);
  const compute_url = engine
    ? `unix://${engine.socketPath}`
    : `process:${programs.split(sep).map(encodeURIComponent).join('/')}`;
  await admin.post('/chris-admin/api/v1/computeresources/', {
    name: COMPUTE_NAME,
    compute_url,
    // The API asks for both; neither engine has users.
    compute_user: 'none',
    compute_password: generatePassword(),
    description: 'Where the demo runs its plugin',
  });
  return engine ? `runs in containers (${engine.socketPath})` : 'runs as a process of the server';
}

/** @returns null when there is no engine that can be used and none was asked for. */
async function prepareContainers(choice: EngineChoice, step: Step): Promise<ContainerEngine | null> {
  step.progress('looking for a container engine');
  const engine = await findContainerEngine(process.env);
  if (engine === null) {
    if (choice === 'auto') return null;
    throw new DemoFailed(
      'no container engine answers; start Docker or Podman, set DOCKER_HOST to its socket, or use --engine process',
    );
  }
  step.progress('building the image of the plugin');
  try {
    await ensureImage(engine.docker);
    return engine;
  } catch (error) {
    if (!(error instanceof ImageNotBuilt)) throw error;
    if (choice === 'containers') throw new DemoFailed(error.message);
    step.lines([`      ${error.message}; going on without containers`]);
    return null;
  }
}

export async function registerPlugin(admin: Client): Promise<Plugin> {
  const form = new FormData();
  form.set('compute_names', COMPUTE_NAME);
  form.set('fname', new Blob([await readFile(descriptorPath)], { type: 'application/json' }), 'pl-series-summary.json');
  return admin.postForm('/chris-admin/api/v1/', form);
}

export async function createUser(anonymous: Client, account: Account): Promise<Client> {
  await anonymous.post('/api/v1/users/', { ...account, email: `${account.username}@example.org` });
  return authorize(anonymous, account);
}

/** @returns the folder that everything was uploaded to, and in words what that was. */
export async function uploadExamples(
  user: Client,
  username: string,
  step: Step,
): Promise<{ folder: string; words: string }> {
  const source = join(examples, 'data');
  const entries = await readdir(source, { recursive: true, withFileTypes: true });
  const files = entries.filter((entry) => entry.isFile()).map((entry) => join(entry.parentPath, entry.name));
  const sizes = await Promise.all(files.map(async (file) => (await stat(file)).size));
  const total = sizes.reduce((sum, size) => sum + size, 0);
  const folder = `home/${username}/uploads/examples`;
  let done = 0;
  for (const file of files.toSorted()) {
    const path = relative(source, file).split(sep).join('/');
    await user.upload('/api/v1/userfiles/', { upload_path: `${folder}/${path}` }, file, (bytes) => {
      done += bytes;
      step.progress(`${progressBar(done, total)} ${formatBytes(done)} of ${formatBytes(total)}`);
    });
  }
  return { folder, words: `${files.length} files, ${formatBytes(total)}, to ${folder}` };
}

/** Makes a feed from the uploaded folder and summarises it there. @returns the ended summary. */
export async function analyse(
  user: Client,
  folder: string,
  plugin: Plugin,
  screen: Screen,
  step: Step,
): Promise<Instance> {
  const found: Page<Plugin> = await user.get('/api/v1/plugins/search/', { name_exact: 'pl-dircopy', limit: 1 });
  const [copier] = found.results;
  if (!copier) throw new DemoFailed('the server has no plugin pl-dircopy');
  const root: Instance = await user.post(`/api/v1/plugins/${copier.id}/instances/`, {
    dir: folder,
    title: 'Example images',
  });
  const summary: Instance = await user.post(`/api/v1/plugins/${plugin.id}/instances/`, { previous_id: root.id });
  const deadline = Date.now() + ANALYSIS_LIMIT_SECONDS * 1000;
  while (true) {
    const instances = await user.getAll<Instance>('/api/v1/plugins/instances/search/', { feed_id: root.feed_id });
    step.lines(drawTree(instances, (style, text) => screen.style(style, text)));
    const failed = instances.find((each) => !each.active && each.status !== 'finishedSuccessfully');
    if (failed) throw new DemoFailed(describeFailure(failed));
    const ended = instances.find((each) => each.id === summary.id && !each.active);
    if (ended && instances.every((each) => !each.active)) return ended;
    if (Date.now() > deadline) throw new DemoFailed(`the analysis did not end within ${ANALYSIS_LIMIT_SECONDS} s`);
    await sleep(POLL_MILLISECONDS);
  }
}

/** @returns what was downloaded: paths below the folder, and sizes in bytes. */
export async function downloadOutput(
  user: Client,
  instance: Instance,
  target: OutputFolder,
  step: Step,
): Promise<{ path: string; sizeBytes: number }[]> {
  const prefix = `${instance.output_path}/`;
  const files = await user.getAll<UserFile>('/api/v1/userfiles/search/', { fname: prefix });
  if (files.length === 0) throw new DemoFailed(`there are no output files in ${instance.output_path}`);
  const downloaded: { path: string; sizeBytes: number }[] = [];
  for (const { fname, fsize, file_resource } of files) {
    const path = fname.slice(prefix.length);
    step.progress(`${progressBar(downloaded.length, files.length)} ${path}`);
    const place = await target.place(path);
    await user.download(file_resource, place);
    const { size } = await stat(place);
    if (size !== fsize) throw new DemoFailed(`${path} has ${fsize} bytes, but ${size} were downloaded`);
    downloaded.push({ path, sizeBytes: size });
  }
  return downloaded.toSorted((a, b) => (a.path < b.path ? -1 : 1));
}

/** One line a file at the top, one a folder below. */
export function listOutput(files: readonly { path: string; sizeBytes: number }[]): string[] {
  const rows = new Map<string, { count: number; sizeBytes: number }>();
  for (const { path, sizeBytes } of files) {
    const folder = dirname(path);
    const name = folder === '.' ? path : `${folder}/`;
    const row = rows.get(name) ?? { count: 0, sizeBytes: 0 };
    rows.set(name, { count: row.count + 1, sizeBytes: row.sizeBytes + sizeBytes });
  }
  const width = Math.max(...[...rows.keys()].map((name) => name.length));
  return [...rows].map(([name, { count, sizeBytes }]) => {
    const pictures = name.endsWith('/') ? `  ${count} files` : '';
    return `      ${name.padEnd(width)}  ${formatBytes(sizeBytes).padStart(9)}${pictures}`;
  });
}

function describeFailure({ plugin_name, status, error_code, raw }: Instance): string {
  const log = programLog(raw).trimEnd();
  const shown = log === '' ? '(it wrote nothing)' : log.split('\n').slice(-SHOWN_LOG_LINES).join('\n');
  return `${plugin_name} ended as ${status}${error_code === '' ? '' : ` (${error_code})`}. The end of its log:\n${shown}`;
}
