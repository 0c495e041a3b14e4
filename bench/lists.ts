/** Requests that read and change rows, beside the same SQL in bare handlers. */
import { compare, type Load } from './load.ts';
import type { World } from './processes.ts';
import type { Row } from './report.ts';
import { type Seeded, seed, USER } from './seed.ts';

interface Case {
  readonly what: string;
  readonly method: Load['method'];
  /** Paths on the two sides. */
  readonly ours: string;
  readonly bare: string;
  readonly body?: string;
  readonly next?: (base: string) => NonNullable<Load['next']>;
}

/** Another name for another feed at each request. */
function renamed(feedIds: readonly number[]): (base: string) => NonNullable<Load['next']> {
  let count = 0;
  return (base) => () => {
    count += 1;
    return { path: `${base}${feedIds[count % feedIds.length]}/`, body: JSON.stringify({ name: `name ${count}` }) };
  };
}

function casesOf({ userId, feedIds }: Seeded): readonly Case[] {
  return [
    {
      what: 'token creation',
      method: 'POST',
      ours: '/api/v1/auth-token/',
      bare: '/token',
      body: JSON.stringify(USER),
    },
    { what: 'user item', method: 'GET', ours: `/api/v1/users/${userId}/`, bare: `/users/${userId}` },
    { what: 'plugin list', method: 'GET', ours: '/api/v1/plugins/', bare: '/plugins' },
    { what: 'feed list', method: 'GET', ours: '/api/v1/', bare: '/feeds' },
    { what: 'file list', method: 'GET', ours: '/api/v1/userfiles/', bare: '/files' },
    { what: "a feed's change of name", method: 'PUT', ours: '/api/v1/', bare: '/feeds/', next: renamed(feedIds) },
  ];
}

/** The server answers in the media type that clients of the API ask for; token creation speaks JSON only. */
const COLLECTION_JSON = 'application/vnd.collection+json';
const JSON_TYPE = 'application/json';

export async function measureLists({ server, bare }: World): Promise<Row[]> {
  process.stderr.write('filling the server\n');
  const seeded = await seed(server.url);
  const rows: Row[] = [];
  for (const { what, method, ours, bare: path, body, next } of casesOf(seeded)) {
    const side = (url: string, target: string, accept: string): Load => ({
      url: url + target,
      method,
      headers: {
        ...(method === 'POST' ? {} : { authorization: seeded.authorization }),
        ...(method === 'GET' ? {} : { 'content-type': JSON_TYPE }),
        accept,
      },
      ...(body !== undefined && { body }),
      ...(next && { next: next(target) }),
    });
    const measured = await compare(
      side(server.url, ours, method === 'POST' ? JSON_TYPE : COLLECTION_JSON),
      side(bare.url, path, JSON_TYPE),
    );
    const words = ({ requestsPerSecond, p99Milliseconds }: typeof measured.ours): string =>
      `${Math.round(requestsPerSecond)}/s, p99 ${p99Milliseconds.toFixed(1)} ms`;
    rows.push({
      what,
      ours: words(measured.ours),
      bare: words(measured.bare),
      result: (measured.ours.requestsPerSecond / measured.bare.requestsPerSecond).toFixed(2),
      aim: '≥ 0.70',
    });
  }
  return rows;
}
