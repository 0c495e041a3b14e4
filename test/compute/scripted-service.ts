/** A compute service that answers as told and remembers what it was asked. */
import http from 'node:http';
import type { AddressInfo } from 'node:net';

export interface Asked {
  readonly method: string;
  readonly path: string;
  readonly type: string;
  readonly authorization: string;
  readonly form: FormData | null;
  readonly json: unknown;
}

export interface Answer {
  readonly status: number;
  readonly body?: unknown;
  readonly headers?: Record<string, string>;
  /** Ends the connection after this many bytes of the body. */
  readonly breakAfter?: number;
}

export class ScriptedService implements AsyncDisposable {
  readonly asked: Asked[] = [];
  readonly #server: http.Server;
  /** Answers every request but those for tokens. */
  answer: (asked: Asked) => Answer = () => ({ status: 404 });
  /** The token that is given out and accepted. */
  token = 'good';
  /** Answers a request for a token, unless it is null. */
  refuseToken: Answer | null = null;

  private constructor() {
    this.#server = http.createServer((request, response) => {
      this.#handle(request, response).catch((error) => response.destroy(error));
    });
  }

  static async open(): Promise<ScriptedService> {
    const service = new ScriptedService();
    await new Promise<void>((resolve) => service.#server.listen(0, '127.0.0.1', resolve));
    return service;
  }

  get url(): string {
    const { port } = this.#server.address() as AddressInfo;
    return `http://127.0.0.1:${port}/api/v1/`;
  }

  /** Requests of a kind, such as `POST /pluginjobs/`. */
  of(text: string): Asked[] {
    return this.asked.filter(({ method, path }) => `${method} ${path}`.startsWith(text));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }

  async #handle(request: http.IncomingMessage, response: http.ServerResponse): Promise<void> {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk);
    const body = Buffer.concat(chunks);
    const type = request.headers['content-type'] ?? '';
    const asked: Asked = {
      method: request.method ?? '',
      path: (request.url ?? '').replace('/api/v1', ''),
      type: type.split(';')[0] ?? '',
      authorization: request.headers.authorization ?? '',
      form: type.includes('form') ? await new Response(body, { headers: { 'content-type': type } }).formData() : null,
      json: type.includes('json') ? JSON.parse(body.toString()) : null,
    };
    this.asked.push(asked);
    send(response, this.#decide(asked));
  }

  #decide(asked: Asked): Answer {
    if (asked.path === '/auth-token/') return this.refuseToken ?? { status: 200, body: { token: this.token } };
    if (asked.authorization !== `Bearer ${this.token}`) return { status: 401, body: { message: 'invalid token' } };
    return this.answer(asked);
  }
}

function send(response: http.ServerResponse, { status, body, headers = {}, breakAfter }: Answer): void {
  const bytes = Buffer.isBuffer(body) ? body : Buffer.from(body === undefined ? '' : JSON.stringify(body));
  response.writeHead(status, { ...headers, 'content-length': bytes.length });
  if (breakAfter === undefined) response.end(bytes);
  else response.write(bytes.subarray(0, breakAfter), () => response.destroy());
}

export function jobAnswer(status: string, more: Record<string, string> = {}): Record<string, unknown> {
  const compute = {
    jid: 'j',
    image: 'img',
    cmd: 'cmd',
    status,
    message: status,
    timestamp: '2026-01-01T00:00:00Z',
    logs: 'log',
  };
  return { compute: { ...compute, ...more } };
}
