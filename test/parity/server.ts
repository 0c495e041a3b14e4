/** The server that recorded steps are played against: with the plugins that the scenarios expect, really running. */
import { existsSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { clientOf, type Request } from '../helpers/client.ts';
import { type Credentials, startServer } from '../helpers/server.ts';

const ADMIN_API = '/svc-admin/api/v1/';
const CONTAINER_SOCKET = '/run/podman.sock';

export interface ParityServer {
  readonly url: string;
  readonly admin: Credentials;
  close(): Promise<void>;
}

async function must(answer: ReturnType<Request>): Promise<void> {
  const { status, text } = await answer;
  if (status !== 201) throw new Error(`preparing the server failed with ${status}: ${text}`);
}

/** Registers the container engine and, on it, the plugins whose descriptors lie beside the scenarios. */
async function registerPlugins(request: Request, as: Credentials, descriptors: string): Promise<void> {
  await must(
    request('POST', `${ADMIN_API}computeresources/`, {
      as,
      json: { name: 'host', compute_url: `unix://${CONTAINER_SOCKET}` },
    }),
  );
  for (const name of ['pl-dircopy', 'pl-simpledsapp', 'pl-topologicalcopy']) {
    const form = new FormData();
    form.append('compute_names', name === 'pl-simpledsapp' ? 'host' : 'builtin');
    form.append('fname', new Blob([await readFile(join(descriptors, `${name}.json`))]), `${name}.json`);
    await must(request('POST', ADMIN_API, { as, multipart: form }));
  }
}

/** @param folder of the recorded steps */
export async function startParityServer(folder: string): Promise<ParityServer> {
  const server = await startServer();
  const descriptors = join(folder, '..', 'containers', 'descriptors');
  if (existsSync(CONTAINER_SOCKET) && existsSync(descriptors))
    await registerPlugins(clientOf(server), server.admin, descriptors);
  return server;
}
