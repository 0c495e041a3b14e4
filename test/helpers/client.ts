/** A small client for tests: one request, its answer with the parsed body. */
import type { Credentials, TestServer } from './server.ts';

export interface Answer {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
  /** The parsed JSON, null when the body is none. A wrong guess of its shape fails the test. */
  readonly json: Json;
}

/** JSON of unknown shape that can be walked: a member that is not there is undefined. */
export interface Json {
  readonly [member: string]: Json;
  readonly [index: number]: Json;
}

export interface Options {
  readonly as?: Credentials;
  readonly token?: string;
  readonly json?: unknown;
  readonly form?: Readonly<Record<string, string>>;
  readonly multipart?: FormData;
  readonly body?: string | Uint8Array;
  readonly headers?: Readonly<Record<string, string>>;
}

export type Request = (method: string, path: string, options?: Options) => Promise<Answer>;

function authorization({ as, token }: Options): Record<string, string> {
  if (token !== undefined) return { authorization: `Token ${token}` };
  return as ? { authorization: `Basic ${Buffer.from(`${as.username}:${as.password}`).toString('base64')}` } : {};
}

function bodyOf(options: Options): { body?: string | FormData | Uint8Array<ArrayBuffer>; type?: string } {
  if (options.json !== undefined) return { body: JSON.stringify(options.json), type: 'application/json' };
  if (options.form)
    return { body: new URLSearchParams(options.form).toString(), type: 'application/x-www-form-urlencoded' };
  if (options.multipart) return { body: options.multipart };
  return options.body === undefined ? {} : { body: Uint8Array.from(Buffer.from(options.body)) };
}

function parse(text: string, type: string): Json {
  return JSON.parse(type.includes('json') && text !== '' ? text : 'null');
}

/** Requests to a server; JSON is asked for unless a header says otherwise. */
export function clientOf(server: Pick<TestServer, 'url'>): Request {
  return async (method, path, options = {}) => {
    const { body, type } = bodyOf(options);
    const response = await fetch(path.startsWith('http') ? path : server.url + path, {
      method,
      headers: {
        accept: 'application/json',
        ...(type && { 'content-type': type }),
        ...authorization(options),
        ...options.headers,
      },
      redirect: 'manual',
      ...(body !== undefined && { body }),
    });
    const text = await response.text();
    return {
      status: response.status,
      headers: response.headers,
      text,
      json: parse(text, response.headers.get('content-type') ?? ''),
    };
  };
}

let counter = 0;

/** A new account with a unique name. */
export async function signUp(request: Request, word = 'user'): Promise<Credentials & { id: number }> {
  counter += 1;
  const username = `${word}${process.pid}x${counter}`;
  const password = `${word}-password-1`;
  const answer = await request('POST', '/api/v1/users/', {
    json: { username, password, email: `${username}@example.org` },
  });
  if (answer.status !== 201) throw new Error(`sign-up: ${answer.status} ${answer.text}`);
  return { username, password, id: Number(answer.json.id) };
}
