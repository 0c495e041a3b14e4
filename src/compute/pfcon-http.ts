/**
 * HTTP to a compute service: kept-alive connections, few at a time, streamed bodies, time limits. Redirects are followed only
 * within the service's own origin, since every request carries credentials.
 */
import { randomUUID } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { stat } from 'node:fs/promises';
import { Agent as HttpAgent, request as httpRequest, type IncomingMessage } from 'node:http';
import { Agent as HttpsAgent, request as httpsRequest } from 'node:https';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { ServiceUnreachable } from './errors.ts';

const PARALLEL_REQUESTS = 6;
const MAXIMUM_REDIRECTS = 3;
const MAXIMUM_JSON_BYTES = 256 * 1024 * 1024;

/** A form's fields in order; a list is the same name repeated. */
export type FormFields = readonly (readonly [name: string, value: string])[];

export type Body =
  | { readonly kind: 'none' }
  | { readonly kind: 'json'; readonly value: unknown }
  | { readonly kind: 'form'; readonly fields: FormFields }
  /** A form with one file, which is streamed from disk. */
  | { readonly kind: 'multipart'; readonly fields: FormFields; readonly fileField: string; readonly file: string };

export interface HttpRequest {
  readonly method: 'GET' | 'POST' | 'DELETE';
  readonly url: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: Body;
  /** For the whole exchange, answer included. */
  readonly timeoutSeconds: number;
}

export interface HttpAnswer {
  readonly status: number;
  /** Must be read to its end or destroyed. */
  readonly body: IncomingMessage;
}

export class HttpConnections {
  readonly #http = new HttpAgent({ keepAlive: true, maxSockets: PARALLEL_REQUESTS });
  readonly #https = new HttpsAgent({ keepAlive: true, maxSockets: PARALLEL_REQUESTS });

  /** @throws {ServiceUnreachable} when there is no answer */
  async send(request: HttpRequest): Promise<HttpAnswer> {
    let { url } = request;
    for (let redirects = 0; ; redirects++) {
      const answer = await this.#sendOnce({ ...request, url });
      const location = redirectTarget(answer, url);
      if (location === null) return answer;
      answer.body.resume();
      if (redirects === MAXIMUM_REDIRECTS || new URL(location).origin !== new URL(url).origin) {
        throw new ServiceUnreachable(`${url} redirects to ${location}, which is not followed`);
      }
      url = location;
    }
  }

  close(): void {
    this.#http.destroy();
    this.#https.destroy();
  }

  async #sendOnce(request: HttpRequest): Promise<HttpAnswer> {
    const encoded = await encode(request.body ?? { kind: 'none' });
    const isHttps = new URL(request.url).protocol === 'https:';
    const signal = AbortSignal.timeout(request.timeoutSeconds * 1000);
    const options = {
      method: request.method,
      agent: isHttps ? this.#https : this.#http,
      headers: { accept: '*/*', ...request.headers, ...encoded.headers },
      signal,
    };
    try {
      return await new Promise((resolve, reject) => {
        const sending = (isHttps ? httpsRequest : httpRequest)(request.url, options);
        sending.once('error', reject);
        sending.once('response', (body) => resolve({ status: body.statusCode ?? 0, body }));
        // Its failure is the request's own error.
        pipeline(encoded.stream(), sending).catch(reject);
      });
    } catch (error) {
      const reason = signal.aborted ? `no answer within ${request.timeoutSeconds} s` : messageOf(error);
      throw new ServiceUnreachable(`${request.method} ${request.url}: ${reason}`);
    }
  }
}

/** The body as JSON; undefined when it is none. @throws {ServiceUnreachable} when it breaks off */
export async function readJson(answer: HttpAnswer): Promise<unknown> {
  const chunks: Buffer[] = [];
  let sizeBytes = 0;
  try {
    for await (const chunk of answer.body) {
      const bytes = Buffer.from(chunk);
      sizeBytes += bytes.length;
      if (sizeBytes > MAXIMUM_JSON_BYTES) throw new Error(`it is longer than ${MAXIMUM_JSON_BYTES} bytes`);
      chunks.push(bytes);
    }
  } catch (error) {
    throw new ServiceUnreachable(`the answer of the service could not be read: ${messageOf(error)}`);
  }
  try {
    return JSON.parse(Buffer.concat(chunks).toString('utf8'));
  } catch {
    return undefined;
  }
}

function redirectTarget({ status, body }: HttpAnswer, url: string): string | null {
  if (![301, 302, 303, 307, 308].includes(status) || body.headers.location === undefined) return null;
  return URL.parse(body.headers.location, url)?.href ?? null;
}

interface Encoded {
  readonly headers: Record<string, string>;
  stream(): Readable;
}

async function encode(body: Body): Promise<Encoded> {
  switch (body.kind) {
    case 'none':
      return { headers: {}, stream: () => Readable.from([]) };
    case 'json':
      return text('application/json', JSON.stringify(body.value));
    case 'form':
      return text(
        'application/x-www-form-urlencoded',
        new URLSearchParams(body.fields.map(([name, value]) => [name, value])).toString(),
      );
    case 'multipart':
      return multipart(body.fields, body.fileField, body.file);
  }
}

function text(type: string, content: string): Encoded {
  const bytes = Buffer.from(content);
  return {
    headers: { 'content-type': type, 'content-length': String(bytes.length) },
    stream: () => Readable.from([bytes]),
  };
}

/** RFC 7578, with the length known beforehand: services of this kind do not read chunked bodies everywhere. */
async function multipart(fields: FormFields, fileField: string, file: string): Promise<Encoded> {
  const boundary = `hypercube-${randomUUID()}`;
  const parts = fields.map(
    ([name, value]) => `--${boundary}\r\nContent-Disposition: form-data; name="${name}"\r\n\r\n${value}\r\n`,
  );
  const fileHeader = `Content-Disposition: form-data; name="${fileField}"; filename="data.zip"\r\nContent-Type: application/zip`;
  const head = Buffer.from(`${parts.join('')}--${boundary}\r\n${fileHeader}\r\n\r\n`);
  const foot = Buffer.from(`\r\n--${boundary}--\r\n`);
  const { size } = await stat(file);
  return {
    headers: {
      'content-type': `multipart/form-data; boundary=${boundary}`,
      'content-length': String(head.length + size + foot.length),
    },
    stream: () =>
      Readable.from(
        (async function* () {
          yield head;
          yield* createReadStream(file, { highWaterMark: 256 * 1024 });
          yield foot;
        })(),
      ),
  };
}

function messageOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  // Several addresses were tried: the message is empty then.
  return error.message || ('code' in error ? String(error.code) : error.name);
}
