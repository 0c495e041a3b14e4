/** Fills the server through its API, so that lists have something to choose from. */
import { setTimeout as sleep } from 'node:timers/promises';
import { Client } from '../src/commands/demo/client.ts';
import { ADMINISTRATOR } from './processes.ts';

const USERS = 20;
const FEEDS = 200;
const FILES = 1000;
const PLUGINS = 30;
const AT_ONCE = 8;
const FINISH_SECONDS = 300;

/** The account that the measured requests come from: it owns an equal share of everything. */
export const USER = { username: 'user0', password: 'benchmark-user' };

export function clientOf(baseUrl: string): Client {
  return new Client({ baseUrl, signal: new AbortController().signal });
}

export interface LoggedIn {
  readonly client: Client;
  readonly authorization: string;
}

export async function logIn(baseUrl: string, account: typeof USER): Promise<LoggedIn> {
  const client = clientOf(baseUrl);
  const { token } = await client.post<{ token: string }>('/api/v1/auth-token/', { ...account });
  const authorization = `Token ${token}`;
  return { client: client.as(authorization), authorization };
}

/** Runs work for 0 … count - 1, several at once. */
async function times(count: number, work: (index: number) => Promise<unknown>): Promise<void> {
  const indexes = Array.from({ length: count }, (_, index) => index).values();
  const run = async (): Promise<void> => {
    for (const index of indexes) await work(index);
  };
  await Promise.all(Array.from({ length: AT_ONCE }, run));
}

export interface Seeded {
  readonly userId: number;
  readonly authorization: string;
  /** Of the user. */
  readonly feedIds: readonly number[];
}

export async function seed(baseUrl: string): Promise<Seeded> {
  const admin = (await logIn(baseUrl, ADMINISTRATOR)).client;
  await times(PLUGINS, (index) => addPlugin(admin, 'builtin', { ...EXAMPLE_PLUGIN, name: `pl-example-${index}` }));
  const accounts = Array.from({ length: USERS }, (_, index) => ({ ...USER, username: `user${index}` }));
  const userIds: number[] = [];
  await times(USERS, async (index) => {
    userIds[index] = await createUser(baseUrl, `user${index}`);
  });
  const users = await Promise.all(accounts.map((account) => logIn(baseUrl, account)));
  const clientAt = (index: number): Client => users[index % USERS]?.client ?? admin;
  await times(FILES, (index) => {
    const folder = `home/user${index % USERS}/uploads/series-${Math.floor(index / USERS) % 5}`;
    return uploadText(clientAt(index), `${folder}/slice-${index}.txt`);
  });
  await times(FEEDS, (index) => runCopy(clientAt(index), [`home/user${index % USERS}/uploads/series-0`]));
  await finished(admin);
  const { client, authorization } = await logIn(baseUrl, USER);
  const feeds = await client.getAll<{ id: number }>('/api/v1/');
  return { userId: userIds[0] ?? 0, authorization, feedIds: feeds.map(({ id }) => id) };
}

async function createUser(baseUrl: string, username: string): Promise<number> {
  const account = { ...USER, username, email: `${username}@example.org` };
  return (await clientOf(baseUrl).post<{ id: number }>('/api/v1/users/', account)).id;
}

/** A new account that owns nothing yet. */
export async function signUp(baseUrl: string, username: string): Promise<LoggedIn> {
  await createUser(baseUrl, username);
  return logIn(baseUrl, { ...USER, username });
}

export const EXAMPLE_PLUGIN = {
  name: 'pl-example',
  type: 'ds',
  version: '1.0',
  title: 'An example of a plugin',
  category: 'Examples',
  authors: 'Hypercube',
  description: 'Does nothing.',
  dock_image: 'example/pl-example',
  execshell: 'sh',
  selfpath: '/bin',
  selfexec: 'example',
  parameters: [],
};

export async function addPlugin(
  admin: Client,
  computeName: string,
  descriptor: typeof EXAMPLE_PLUGIN,
): Promise<{ id: number }> {
  const form = new FormData();
  form.set('compute_names', computeName);
  form.set('fname', new Blob([JSON.stringify(descriptor)]), 'plugin.json');
  return admin.postForm('/chris-admin/api/v1/', form);
}

export async function uploadText(client: Client, path: string): Promise<void> {
  const form = new FormData();
  form.set('upload_path', path);
  form.set('fname', new Blob(['A small file.\n']), 'file');
  await client.postForm('/api/v1/userfiles/', form);
}

export interface Instance {
  readonly id: number;
  readonly url: string;
  readonly status: string;
}

/** Starts a feed that copies folders. */
export async function runCopy(client: Client, folders: readonly string[]): Promise<Instance> {
  const { results } = await client.get<{ results: { id: number }[] }>('/api/v1/plugins/search/', {
    name_exact: 'pl-dircopy',
    limit: 1,
  });
  return client.post(`/api/v1/plugins/${results[0]?.id}/instances/`, { dir: folders.join(',') });
}

/** Waits until no instance is at work. */
async function finished(admin: Client): Promise<void> {
  const deadline = Date.now() + FINISH_SECONDS * 1000;
  for (;;) {
    const { count } = await admin.get<{ count: number }>('/api/v1/plugins/instances/search/', {
      status: 'finishedSuccessfully',
    });
    if (count === FEEDS) return;
    if (Date.now() > deadline) throw new Error(`${FEEDS - count} of ${FEEDS} feeds have not finished`);
    await sleep(200);
  }
}
