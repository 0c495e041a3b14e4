/** Scripted services for the tests of the catalogue: a compute service that speaks pfcon's protocol, and a plugin store. */
import { once } from 'node:events';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';

export interface ScriptedService {
  readonly root: string;
  /** What it was asked, as `METHOD path`. */
  readonly asked: string[];
  close(): Promise<void>;
}

type Answerer = (request: IncomingMessage, body: string, response: ServerResponse) => void;

export async function serveScript(answer: Answerer, port = 0): Promise<ScriptedService> {
  const asked: string[] = [];
  const server: Server = createServer(async (request, response) => {
    asked.push(`${request.method} ${request.url}`);
    let body = '';
    for await (const chunk of request) body += chunk;
    answer(request, body, response);
  });
  server.listen(port, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('the service has no port');
  const close = async (): Promise<void> => {
    server.closeAllConnections();
    server.close();
    await once(server, 'close');
  };
  return { root: `http://127.0.0.1:${address.port}`, asked, close };
}

export function sendJson(response: ServerResponse, status: number, body: unknown): void {
  response.writeHead(status, { 'content-type': 'application/json', connection: 'close' }).end(JSON.stringify(body));
}

export const PASSWORD = 'right-password';

/** A pfcon with a password. */
export function servePfcon(facts: { innetwork?: boolean; storage?: string } = {}, port = 0): Promise<ScriptedService> {
  return serveScript((request, body, response) => {
    if (request.method === 'POST' && request.url?.endsWith('auth-token/')) {
      const right = JSON.parse(body).pfcon_password === PASSWORD;
      sendJson(response, right ? 200 : 400, right ? { token: 'a token' } : { message: 'wrong' });
    } else if (request.method === 'GET' && request.url?.endsWith('/pluginjobs/')) {
      sendJson(response, 200, {
        pfcon_innetwork: facts.innetwork ?? true,
        storage_env: facts.storage ?? 'fslink',
        requires_copy_job: true,
        requires_upload_job: false,
      });
    } else {
      sendJson(response, 404, {});
    }
  }, port);
}
