/** How long a job takes, from its creation until it is seen finished. */
import { execFile } from 'node:child_process';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';
import type { Client } from '../src/commands/demo/client.ts';
import { findContainerEngine } from '../src/commands/demo/container-engine.ts';
import { inTurn, median } from './load.ts';
import { ADMINISTRATOR, type World } from './processes.ts';
import type { Row } from './report.ts';
import { addPlugin, EXAMPLE_PLUGIN, type Instance, logIn, runCopy, signUp, uploadText } from './seed.ts';

const run = promisify(execFile);
const FILES = 100;
const COPIES = 7;
const POLL_MILLISECONDS = 10;
const IMAGES = process.env.BENCH_IMAGE ? [process.env.BENCH_IMAGE] : ['localhost/busybox:1', 'busybox:1', 'busybox'];
const SHELL = 'env';
const USERNAME = 'runner';
const INPUT = `home/${USERNAME}/uploads/hundred`;

/** Starts an instance and looks at it until it has ended. @returns seconds */
async function timed(client: Client, start: () => Promise<Instance>): Promise<number> {
  const began = performance.now();
  let instance = await start();
  while (!/^(finished|cancelled)/.test(instance.status)) {
    await sleep(POLL_MILLISECONDS);
    instance = await client.get<Instance>(instance.url);
  }
  if (instance.status !== 'finishedSuccessfully') throw new Error(`${instance.url}: ${instance.status}`);
  return (performance.now() - began) / 1000;
}

export async function measureJobs({ server }: World): Promise<Row[]> {
  const { client } = await signUp(server.url, USERNAME);
  for (let index = 0; index < FILES; index += 1) await uploadText(client, `${INPUT}/${index}.txt`);
  const seconds: number[] = [];
  for (let count = 0; count < COPIES; count += 1) seconds.push(await timed(client, () => runCopy(client, [INPUT])));
  const copy = `${median(seconds).toFixed(3)} s`;
  return [
    { what: `pl-dircopy over ${FILES} files`, ours: copy, bare: '–', result: copy, aim: '< 0.2 s' },
    await measureContainer(server.url, client),
  ];
}

const CONTAINER_ROW = { what: 'a container job beyond `docker run`', aim: '< 0.15 s' };

async function measureContainer(url: string, client: Client): Promise<Row> {
  const engine = await findContainerEngine(process.env);
  const local = await findImage();
  if (engine === null || local === null)
    return { ...CONTAINER_ROW, ours: 'no engine, or no image of busybox', bare: '–', result: '–' };
  const admin = (await logIn(url, ADMINISTRATOR)).client;
  await admin.post('/chris-admin/api/v1/computeresources/', {
    name: 'containers',
    compute_url: `unix://${engine.socketPath}`,
    compute_user: 'none',
    compute_password: ADMINISTRATOR.password,
  });
  const { id } = await addPlugin(admin, 'containers', {
    ...EXAMPLE_PLUGIN,
    name: 'pl-true',
    dock_image: local.image,
    execshell: SHELL,
    selfpath: '/bin',
    selfexec: 'true',
  });
  const previous = await runCopy(client, [INPUT]);
  await timed(client, async () => previous);
  const start = (): Promise<Instance> => client.post(`/api/v1/plugins/${id}/instances/`, { previous_id: previous.id });
  const measured = await inTurn(
    () => timed(client, start),
    () => runDirectly(local),
  );
  const [ours, bare] = [median(measured.ours), median(measured.bare)];
  return {
    ...CONTAINER_ROW,
    ours: `${ours.toFixed(3)} s`,
    bare: `${bare.toFixed(3)} s`,
    result: `${(ours - bare).toFixed(3)} s`,
  };
}

interface LocalImage {
  readonly program: string;
  readonly image: string;
}

/** A program that runs containers, and an image that it has; null when one of the two is missing. */
async function findImage(): Promise<LocalImage | null> {
  for (const program of ['docker', 'podman']) {
    for (const image of IMAGES) {
      const found = await run(program, ['image', 'inspect', image]).then(
        () => true,
        () => false,
      );
      if (found) return { program, image };
    }
  }
  return null;
}

/** The command of the job, without its folders. @returns seconds */
async function runDirectly({ program, image }: LocalImage): Promise<number> {
  const began = performance.now();
  await run(program, [
    'run',
    '--rm',
    '--network',
    'none',
    image,
    SHELL,
    '/bin/true',
    '/share/incoming',
    '/share/outgoing',
  ]);
  return (performance.now() - began) / 1000;
}
