/** Requests that `fetch` would not send: any method, any header, any bytes; each ends within ten seconds. */
import { type IncomingHttpHeaders, type OutgoingHttpHeaders, request } from 'node:http';
import { connect } from 'node:net';

const LIMIT_MILLISECONDS = 10_000;

export interface Reply {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly text: string;
}

export interface Sending {
  readonly headers?: OutgoingHttpHeaders;
  readonly body?: string | Uint8Array;
}

/** @throws when there is no answer in time */
export function send(
  origin: string,
  method: string,
  path: string,
  { headers = {}, body }: Sending = {},
): Promise<Reply> {
  const { hostname, port } = new URL(origin);
  return new Promise((resolve, reject) => {
    const length =
      body === undefined || 'transfer-encoding' in headers ? {} : { 'content-length': Buffer.byteLength(body) };
    const asked = request({ hostname, port, method, path, headers: { ...length, ...headers } }, (answer) => {
      const chunks: Buffer[] = [];
      answer.on('data', (chunk: Buffer) => chunks.push(chunk));
      answer.on('error', reject);
      answer.on('end', () => {
        const text = Buffer.concat(chunks).toString('utf8');
        resolve({ status: answer.statusCode ?? 0, headers: answer.headers, text });
      });
    });
    asked.setTimeout(LIMIT_MILLISECONDS, () => asked.destroy(new Error(`${method} ${path}: no answer in time`)));
    asked.on('error', reject);
    asked.end(body);
  });
}

/**
 * Sends bytes as they are on a connection of their own.
 * @param leave goes away after so many milliseconds, instead of waiting for the server to close
 * @returns what came back, headers and all
 */
export function sendRaw(origin: string, bytes: string | Uint8Array, leave?: number): Promise<string> {
  const { hostname, port } = new URL(origin);
  return new Promise((resolve, reject) => {
    const socket = connect(Number(port), hostname, () => socket.write(bytes));
    const chunks: Buffer[] = [];
    const timer = setTimeout(() => {
      socket.destroy();
      if (leave === undefined) reject(new Error(`no answer in time to ${String(bytes).slice(0, 200)}`));
    }, leave ?? LIMIT_MILLISECONDS);
    socket.on('data', (chunk: Buffer) => chunks.push(chunk));
    // the server may close while a long request is still being written
    socket.on('error', () => undefined);
    socket.on('close', () => {
      clearTimeout(timer);
      resolve(Buffer.concat(chunks).toString('utf8'));
    });
  });
}
