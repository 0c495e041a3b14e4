/** As much of a client of the API as the demo needs. */
import { createReadStream, createWriteStream } from 'node:fs';
import { stat } from 'node:fs/promises';
import { type IncomingMessage, request } from 'node:http';
import { text } from 'node:stream/consumers';
import { pipeline } from 'node:stream/promises';
import { CommandError } from '../failure.ts';

/** The server answered with an error, or not at all. */
export class ApiError extends CommandError {
  override readonly name = 'ApiError';
}

export interface Page<Item> {
  readonly count: number;
  readonly next: string | null;
  readonly results: readonly Item[];
}

export interface ClientOptions {
  readonly baseUrl: string;
  /** Value of the `Authorization` header. */
  readonly authorization?: string;
  readonly signal: AbortSignal;
}

type Query = Readonly<Record<string, string | number>>;

export class Client {
  readonly #options: ClientOptions;

  constructor(options: ClientOptions) {
    this.#options = options;
  }

  as(authorization: string): Client {
    return new Client({ ...this.#options, authorization });
  }

  /** `path` is relative to the base, or an absolute link from an answer. The type is that of the documented answer. */
  async get<Answer>(path: string, query: Query = {}): Promise<Answer> {
    const url = this.#url(path);
    for (const [name, value] of Object.entries(query)) url.searchParams.set(name, String(value));
    return this.#json('GET', url);
  }

  async getAll<Item>(path: string, query: Query = {}): Promise<Item[]> {
    const items: Item[] = [];
    let page: Page<Item> = await this.get(path, { ...query, limit: 100 });
    items.push(...page.results);
    while (page.next !== null) {
      page = await this.get(page.next);
      items.push(...page.results);
    }
    return items;
  }

  async post<Answer>(path: string, body: Readonly<Record<string, unknown>>): Promise<Answer> {
    return this.#json('POST', this.#url(path), {
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(body),
    });
  }

  async postForm<Answer>(path: string, form: FormData): Promise<Answer> {
    return this.#json('POST', this.#url(path), { body: form });
  }

  /**
   * Streams a file as the multipart field `fname`, after the other fields.
   * `sent` gets the number of bytes of the file each time that some have left for the network.
   */
  async upload(
    path: string,
    fields: Readonly<Record<string, string>>,
    file: string,
    sent: (bytes: number) => void,
  ): Promise<void> {
    const { size } = await stat(file);
    const boundary = `hypercube-${crypto.randomUUID()}`;
    const part = (disposition: string) => `--${boundary}\r\nContent-Disposition: form-data; ${disposition}\r\n\r\n`;
    const values = Object.entries(fields).map(([name, value]) => `${part(`name="${name}"`)}${value}\r\n`);
    const head = Buffer.from(`${values.join('')}${part('name="fname"; filename="file"')}`);
    const tail = Buffer.from(`\r\n--${boundary}--\r\n`);
    const url = this.#url(path);
    const outgoing = request(url, {
      method: 'POST',
      signal: this.#options.signal,
      headers: {
        ...this.#headers(),
        'content-type': `multipart/form-data; boundary=${boundary}`,
        'content-length': head.length + size + tail.length,
      },
    });
    const answered = new Promise<IncomingMessage>((resolve, reject) => {
      outgoing.once('response', resolve);
      outgoing.once('error', reject);
    });
    const body = async function* () {
      yield head;
      // The stream asks for the next piece when it has room again, so what came before is on its way.
      for await (const chunk of createReadStream(file)) {
        yield chunk;
        sent(chunk.length);
      }
      yield tail;
    };
    const [answer] = await Promise.all([answered, pipeline(body, outgoing)]);
    const content = await text(answer);
    if (answer.statusCode !== 201) throw this.#refused('POST', url, answer.statusCode ?? 0, content);
  }

  async download(link: string, target: string): Promise<void> {
    const url = this.#url(link);
    const response = await this.#fetch('GET', url);
    if (response.body) await pipeline(response.body, createWriteStream(target), { signal: this.#options.signal });
  }

  #url(path: string): URL {
    return new URL(path, this.#options.baseUrl);
  }

  #headers(): Record<string, string> {
    const { authorization } = this.#options;
    return { accept: 'application/json', ...(authorization !== undefined && { authorization }) };
  }

  async #json<Answer>(method: string, url: URL, init: RequestInit = {}): Promise<Answer> {
    const response = await this.#fetch(method, url, init);
    return JSON.parse(await response.text());
  }

  async #fetch(method: string, url: URL, init: RequestInit = {}): Promise<Response> {
    const headers = { ...this.#headers(), ...init.headers };
    const response = await fetch(url, { ...init, method, headers, signal: this.#options.signal }).catch(
      (error: Error) => {
        this.#options.signal.throwIfAborted();
        throw new ApiError(`${method} ${url.pathname}: no answer (${error.cause ?? error.message})`);
      },
    );
    if (!response.ok) throw this.#refused(method, url, response.status, await response.text());
    return response;
  }

  #refused(method: string, url: URL, status: number, body: string): ApiError {
    return new ApiError(`${method} ${url.pathname}: status ${status} ${body.slice(0, 500)}`);
  }
}
