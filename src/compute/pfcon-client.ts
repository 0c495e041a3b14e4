/** The routes of the compute protocol (pfcon), with the token that they need. */
import { ComputeError, ServiceRefused, ServiceUnreachable } from './errors.ts';
import {
  type Body,
  type FormFields,
  type HttpAnswer,
  HttpConnections,
  type HttpRequest,
  readJson,
} from './pfcon-http.ts';

export type JobKind = 'copyjobs' | 'pluginjobs' | 'uploadjobs' | 'deletejobs';

export interface PfconAddress {
  /** Base of all routes, with a slash at the end. */
  readonly computeUrl: string;
  /** Where tokens are made; empty for the usual route. */
  readonly authUrl: string;
  readonly username: string;
  readonly password: string;
}

export interface PfconClientOptions extends PfconAddress {
  /** The token of earlier times; may be out of date or empty. */
  readonly token: string;
  /** Stores a new token. */
  readonly onToken: (token: string) => Promise<void>;
}

/** Seconds that each kind of request may take (compute protocol, section 8). */
export const TIMEOUTS = { token: 30, status: 100, job: 200, fileList: 500, zip: 9000 } as const;

/** The service answered with something else than success. */
export class PfconAnswer extends ComputeError {
  override readonly name = 'PfconAnswer';
  readonly status: number;

  constructor(status: number, message: string) {
    super(message);
    this.status = status;
  }

  /** Whether the same request may succeed later. */
  get mayPass(): boolean {
    return this.status >= 500 || [401, 409, 429].includes(this.status);
  }
}

export interface CallOptions {
  readonly body?: Body;
  readonly timeoutSeconds: number;
  /** Repeat with a new token also when the connection broke: it may be cut before the 401 to a large upload is read. */
  readonly renewOnBrokenConnection?: boolean;
}

export class PfconClient {
  readonly #options: PfconClientOptions;
  readonly #connections = new HttpConnections();
  /** For zips, so that nothing waits behind them. */
  readonly #transfers = new HttpConnections();
  readonly #base: string;
  #token: string;
  #renewal: Promise<void> | null = null;

  constructor(options: PfconClientOptions) {
    this.#options = options;
    this.#token = options.token;
    this.#base = options.computeUrl.replace(/\/*$/, '/');
  }

  /**
   * One request below the base, repeated once with a new token when the service does not take the old one.
   * @throws {PfconAnswer} for answers other than 2xx, {ServiceUnreachable}, {ServiceRefused} for wrong credentials
   */
  async call(method: HttpRequest['method'], path: string, options: CallOptions): Promise<HttpAnswer> {
    const token = this.#token;
    let answer: HttpAnswer | null = null;
    try {
      answer = token === '' ? null : await this.#send(method, path, options, token);
    } catch (error) {
      if (!options.renewOnBrokenConnection) throw error;
    }
    if (answer === null || answer.status === 401) {
      // The rest of a large upload need not be sent any more.
      if (options.renewOnBrokenConnection) answer?.body.destroy();
      else answer?.body.resume();
      await this.#renew(token);
      answer = await this.#send(method, path, options, this.#token);
    }
    if (answer.status >= 200 && answer.status < 300) return answer;
    throw new PfconAnswer(answer.status, `${method} ${this.#base}${path}: ${answer.status} ${await complaint(answer)}`);
  }

  async json(method: HttpRequest['method'], path: string, options: CallOptions): Promise<unknown> {
    return readJson(await this.call(method, path, options));
  }

  post(kind: JobKind, fields: FormFields): Promise<unknown> {
    return this.json('POST', `${kind}/`, { body: { kind: 'form', fields }, timeoutSeconds: TIMEOUTS.job });
  }

  status(kind: JobKind, jobId: string): Promise<unknown> {
    return this.json('GET', `${kind}/${jobId}/`, { timeoutSeconds: TIMEOUTS.status });
  }

  async delete(kind: JobKind, jobId: string): Promise<void> {
    const answer = await this.call('DELETE', `${kind}/${jobId}/`, { timeoutSeconds: TIMEOUTS.job });
    answer.body.resume();
  }

  close(): void {
    this.#connections.close();
    this.#transfers.close();
  }

  #send(method: HttpRequest['method'], path: string, options: CallOptions, token: string): Promise<HttpAnswer> {
    const connections = options.timeoutSeconds === TIMEOUTS.zip ? this.#transfers : this.#connections;
    return connections.send({
      method,
      url: `${this.#base}${path}`,
      headers: { authorization: `Bearer ${token}` },
      ...(options.body && { body: options.body }),
      timeoutSeconds: options.timeoutSeconds,
    });
  }

  /** One renewal at a time; those who come with the same old token share it, and those who come later have the new one. */
  async #renew(old: string): Promise<void> {
    if (this.#token !== old) return;
    this.#renewal ??= this.#fetchToken().finally(() => {
      this.#renewal = null;
    });
    await this.#renewal;
  }

  async #fetchToken(): Promise<void> {
    const { authUrl, username, password, onToken } = this.#options;
    const answer = await this.#connections.send({
      method: 'POST',
      url: authUrl === '' ? `${this.#base}auth-token/` : authUrl,
      body: { kind: 'json', value: { pfcon_user: username, pfcon_password: password } },
      timeoutSeconds: TIMEOUTS.token,
    });
    const content = await readJson(answer);
    const token = typeof content === 'object' && content !== null && 'token' in content ? content.token : undefined;
    if (answer.status === 200 && typeof token === 'string' && token !== '') {
      this.#token = token;
      await onToken(token);
    } else if (answer.status >= 500 || answer.status === 429) {
      throw new ServiceUnreachable(`the service gives no token: it answers ${answer.status}`);
    } else {
      throw new ServiceRefused(
        `the service refuses the user "${username}" or its password: it answers ${answer.status}`,
      );
    }
  }
}

/** The service's own words about what was wrong, shortened. */
async function complaint(answer: HttpAnswer): Promise<string> {
  const content = await readJson(answer);
  const message = typeof content === 'object' && content !== null && 'message' in content ? content.message : '';
  return (typeof message === 'string' ? message : JSON.stringify(message)).slice(0, 500);
}
