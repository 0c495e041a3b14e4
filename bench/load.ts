/** Requests to two sides in turn. */
import autocannon from 'autocannon';

export const ROUNDS = Number(process.env.BENCH_ROUNDS ?? 3);
const SECONDS = Number(process.env.BENCH_SECONDS ?? 2);
const WARM_UP_SECONDS = 1;
const CONNECTIONS = 10;

export interface Speed {
  readonly requestsPerSecond: number;
  /** 99 of 100 requests took at most this long. */
  readonly p99Milliseconds: number;
}

export function median(values: readonly number[]): number {
  const sorted = values.toSorted((one, other) => one - other);
  const middle = sorted.length >> 1;
  const upper = sorted[middle] ?? Number.NaN;
  return sorted.length % 2 === 1 ? upper : ((sorted[middle - 1] ?? Number.NaN) + upper) / 2;
}

/** Each side in turn, several times, so that whatever else the machine does meets both. */
export async function inTurn<T>(ours: () => Promise<T>, bare: () => Promise<T>): Promise<{ ours: T[]; bare: T[] }> {
  const measured: { ours: T[]; bare: T[] } = { ours: [], bare: [] };
  for (let round = 0; round < ROUNDS; round += 1) {
    measured.ours.push(await ours());
    measured.bare.push(await bare());
  }
  return measured;
}

/** What is asked of one side. `next` makes each request's path and body, where they differ from request to request. */
export interface Load {
  readonly url: string;
  readonly method: 'GET' | 'POST' | 'PUT';
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: string;
  readonly next?: () => { readonly path: string; readonly body: string };
}

/** @throws when an answer is not a success: the speed of errors is of no interest */
async function run({ url, method, headers, body, next }: Load, seconds: number): Promise<Speed> {
  const milliseconds: number[] = [];
  const change = next && ((request: autocannon.Request): autocannon.Request => ({ ...request, ...next() }));
  const options: autocannon.Options = {
    url,
    method,
    headers: { ...headers },
    connections: CONNECTIONS,
    duration: seconds,
    ...(body !== undefined && { body }),
    ...(change && { requests: [{ setupRequest: change }] }),
  };
  const result = await new Promise<autocannon.Result>((resolve, reject) => {
    const instance = autocannon(options, (error: unknown, done: autocannon.Result) =>
      error ? reject(error) : resolve(done),
    );
    instance.on('response', (_client, _status, _bytes, time) => milliseconds.push(time));
  });
  if (result.non2xx > 0 || result.errors > 0)
    throw new Error(`${method} ${url}: ${result.non2xx} answers without success, ${result.errors} errors`);
  milliseconds.sort((one, other) => one - other);
  return {
    requestsPerSecond: milliseconds.length / result.duration,
    p99Milliseconds: milliseconds[Math.floor(milliseconds.length * 0.99)] ?? Number.NaN,
  };
}

function middle(speeds: readonly Speed[]): Speed {
  return {
    requestsPerSecond: median(speeds.map((speed) => speed.requestsPerSecond)),
    p99Milliseconds: median(speeds.map((speed) => speed.p99Milliseconds)),
  };
}

/** Medians of both sides, after a warm-up. */
export async function compare(ours: Load, bare: Load): Promise<{ ours: Speed; bare: Speed }> {
  await run(ours, WARM_UP_SECONDS);
  await run(bare, WARM_UP_SECONDS);
  const measured = await inTurn(
    () => run(ours, SECONDS),
    () => run(bare, SECONDS),
  );
  return { ours: middle(measured.ours), bare: middle(measured.bare) };
}
