/**
 * Every setting of the program, declared once: an environment variable `HYPERCUBE_<NAME>`, its kind, its default and its
 * meaning. `docs/configuration.md` is made from this declaration (`npm run docs`).
 */
import { readFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import {
  choice,
  type Environment,
  everyOr,
  integer,
  isHostName,
  isOrigin,
  networks,
  optional,
  path,
  type Setting,
  setting,
  settingWith,
  text,
  truth,
  url,
} from './config-kinds.ts';

const PREFIX = 'HYPERCUBE_';
const MEBIBYTE = 1024 * 1024;

const environment = setting(choice('development', 'production'), 'development', {
  meaning: 'Where the server runs. In production nothing is open to other origins by default.',
  example: 'production',
});

/** The key of each setting is its variable's name in camel case. */
export const SETTINGS = {
  host: setting(text('a host name or IP address', /^[\w.:-]+$/), '127.0.0.1', {
    meaning: 'Address to listen on; `0.0.0.0` or `::` for all.',
    example: '0.0.0.0',
  }),
  port: setting(integer(0, 65_535), 8000, {
    meaning: 'TCP port to listen on; 0 takes any free one.',
    example: '8080',
  }),
  data: settingWith(path, () => path.read('./data') ?? '', '`./data`', {
    meaning: 'Folder of everything the server keeps: files, the embedded database, its key.',
    example: '/var/lib/hypercube',
  }),
  environment,
  databaseUrl: optional(
    url('a PostgreSQL URL, such as postgresql://user:password@host:5432/name', 'postgres:', 'postgresql:'),
    'an embedded PostgreSQL in the data folder',
    {
      meaning: 'PostgreSQL server (17 or newer, encoding UTF8) to use instead of the embedded one.',
      example: 'postgresql://hypercube:secret@database:5432/hypercube',
      secret: true,
      alias: 'DATABASE_URL',
    },
  ),
  databasePoolSize: setting(integer(2, 1000), 10, {
    meaning: 'Most database connections that one process uses for requests and jobs.',
    example: '20',
  }),
  adminUsername: setting(text('4 to 32 characters without / and ,', /^[^/,\s][^/,]{2,30}[^/,\s]$/), 'chris', {
    meaning: 'User name of the first administrator, made when there is none.',
    example: 'admin',
  }),
  adminPassword: optional(
    text('8 to 100 characters', /^.{8,100}$/s),
    'generated, printed once and kept in the data folder',
    {
      meaning: 'Password of the first administrator. An existing administrator keeps the password it has.',
      example: 'a long passphrase',
      secret: true,
    },
  ),
  adminEmail: setting(text('an e-mail address', /^[^\s@]{1,64}@[^\s@]{1,189}$/), 'dev@babymri.org', {
    meaning: 'E-mail address of the first administrator.',
    example: 'admin@example.org',
  }),
  adminPrefix: setting(
    text(
      'a path that begins and ends with /, such as /svc-admin/, and is not /api/ or /schema/',
      /^(?!\/(?:api|schema|healthz|readyz)\/)(?:\/[\w.~-]+)+\/$/,
    ),
    '/svc-admin/',
    {
      meaning: 'Where the administration interface answers; `/chris-admin/` always does as well.',
      example: '/admin/',
    },
  ),
  baseUrl: optional(url('an http or https URL', 'http:', 'https:'), "the request's own host", {
    meaning: 'What all links in answers begin with.',
    example: 'https://chris.example.org',
  }),
  trustedProxies: settingWith(networks, () => [], 'none', {
    meaning: 'Proxies whose `X-Forwarded-For`, `X-Forwarded-Host` and `X-Forwarded-Proto` headers are believed.',
    example: '10.0.0.1,192.168.0.0/16',
  }),
  allowedHosts: setting(everyOr('host names; one that begins with a dot includes its subdomains', isHostName), '*', {
    meaning: 'Host names under which the server answers; any other is a 400.',
    example: 'chris.example.org,.example.net',
  }),
  corsOrigins: settingWith(
    everyOr('origins, such as https://app.example.org', isOrigin),
    (where): '*' | readonly string[] => (where === 'production' ? [] : '*'),
    '`*` in development, none in production',
    {
      meaning: 'Origins whose web pages may call the API.',
      example: 'https://app.example.org',
    },
  ),
  secretKey: optional(
    text('at least 32 characters', /^.{32,}$/s),
    'made once and kept in `secret.key` in the data folder',
    {
      meaning:
        "The server's key: tokens are made from it, and stored secrets are encrypted with it. The same on all machines.",
      example: 'the output of: openssl rand -hex 32',
      secret: true,
    },
  ),
  tokenLifetimeDays: optional(integer(1, 36_500), 'no end', {
    meaning: 'Days after which an API token is no longer valid.',
    example: '90',
  }),
  signUp: setting(truth, true, {
    meaning: 'Whether anybody may create an account through the API.',
    example: 'false',
  }),
  logLevel: setting(choice('fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent'), 'info', {
    meaning: 'The least important kind of message that is logged.',
    example: 'debug',
  }),
  logFormat: setting(choice('auto', 'json', 'text'), 'auto', {
    meaning: 'One JSON object a line, or text for people. `auto`: text on a terminal, else JSON.',
    example: 'json',
  }),
  workerConcurrency: setting(integer(1, 1000), 4, {
    meaning: 'Background steps that one process works on at once.',
    example: '16',
  }),
  jobSlots: settingWith(integer(1, 100_000), () => availableParallelism(), "this machine's number of processors", {
    meaning: 'Plugins that run at once on one compute resource of this machine (`process:`, containers).',
    example: '8',
  }),
  processEngine: setting(truth, false, {
    meaning:
      'Whether `process:` compute resources may be used: plugins run as plain processes, with the rights of the server.',
    example: 'true',
  }),
  containerUser: optional(
    text('image or two numbers as in 1000:1000', /^(image|\d{1,10}:\d{1,10})$/),
    "the server's own user; `65534:65534` when that is root",
    {
      meaning: 'User and group that plugins have in their containers; `image` leaves the choice to each image.',
      example: '1000:1000',
    },
  ),
  maxUploadBytes: optional(integer(1, Number.MAX_SAFE_INTEGER), 'no limit', {
    meaning: 'Largest file, in bytes, that can be uploaded.',
    example: '10737418240',
  }),
  maxBodyBytes: setting(integer(1024, 1024 * MEBIBYTE), 10 * MEBIBYTE, {
    meaning: 'Largest request body, in bytes, that is not a file upload.',
    example: '1048576',
  }),
  pageLimitMax: setting(integer(10, 1_000_000_000), 1_000_000, {
    meaning: 'Largest page that a list gives, whatever `limit` asks for.',
    example: '1000',
  }),
  shutdownSeconds: setting(integer(0, 3600), 30, {
    meaning: 'Seconds that running requests and jobs get to end when the server stops.',
    example: '10',
  }),
} as const;

type ValueOf<S> = S extends Setting<infer T> ? T : never;

export type Config = { readonly [K in keyof typeof SETTINGS]: ValueOf<(typeof SETTINGS)[K]> };

/** The variables hold something that cannot be used; the message lists all of them, one a line. */
export class ConfigError extends Error {
  override readonly name = 'ConfigError';
  readonly problems: readonly string[];
  constructor(problems: readonly string[]) {
    super(`The configuration cannot be used:\n${problems.map((problem) => `  ${problem}`).join('\n')}`);
    this.problems = problems;
  }
}

/** `databaseUrl` → `HYPERCUBE_DATABASE_URL`. */
export function variableName(key: string): string {
  return PREFIX + key.replace(/[A-Z]/g, '_$&').toUpperCase();
}

/** @throws {ConfigError} naming every variable that is wrong, with what it holds (unless secret) and what it should hold. */
export function loadConfig(env: Readonly<Record<string, string | undefined>>): Config {
  const problems = unknownVariables(env);
  const where = readSetting('environment', environment, env, 'development', problems);
  const values = Object.entries(SETTINGS).map(([key, each]) => [
    key,
    readSetting<unknown>(key, each, env, where, problems),
  ]);
  if (problems.length > 0) throw new ConfigError([...new Set(problems)]);
  // `Config` is mapped from SETTINGS key by key, as these entries are; the standard type of `fromEntries` cannot say so.
  return Object.freeze(Object.fromEntries(values));
}

function readSetting<T>(
  key: string,
  declared: Setting<T>,
  env: Readonly<Record<string, string | undefined>>,
  where: Environment,
  problems: string[],
): T {
  const given = givenText(key, declared, env, problems);
  if (given === null) return declared.fallback(where);
  const value = declared.read(given.text);
  if (value === undefined) {
    const held = declared.secret ? 'a value that is not shown here' : JSON.stringify(given.text);
    problems.push(`${given.name} holds ${held}; it should be ${declared.expected}.`);
    return declared.fallback(where);
  }
  return value;
}

/** The variable's own text, a file's content for `<NAME>_FILE`, or null. An empty variable counts as absent. */
function givenText(
  key: string,
  declared: Setting<unknown>,
  env: Readonly<Record<string, string | undefined>>,
  problems: string[],
): { name: string; text: string } | null {
  const name = variableName(key);
  const own = env[name];
  if (own) return { name, text: own };
  const fileName = `${name}_FILE`;
  const file = declared.secret ? env[fileName] : undefined;
  if (file) {
    try {
      return { name: `The file of ${fileName}`, text: readFileSync(file, 'utf8').replace(/\r?\n$/, '') };
    } catch (error) {
      const reason = error instanceof Error ? error.message : String(error);
      problems.push(`${fileName} holds ${JSON.stringify(file)}; it should be the path of a readable file (${reason}).`);
      return null;
    }
  }
  const other = declared.alias === null ? undefined : env[declared.alias];
  return other && declared.alias ? { name: declared.alias, text: other } : null;
}

function unknownVariables(env: Readonly<Record<string, string | undefined>>): string[] {
  const known = Object.entries(SETTINGS).flatMap(([key, each]) => {
    const name = variableName(key);
    return each.secret ? [name, `${name}_FILE`] : [name];
  });
  return Object.keys(env)
    .filter((name) => name.startsWith(PREFIX) && !known.includes(name))
    .map((name) => `${name} is not a setting; did you mean ${nearest(name, known)}?`);
}

function nearest(name: string, known: readonly string[]): string {
  const [first = ''] = [...known].sort((a, b) => editDistance(name, a) - editDistance(name, b));
  return first;
}

/** Levenshtein distance: insertions, removals and replacements of one character. */
function editDistance(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, index) => index);
  for (const [i, left] of [...a].entries()) {
    const next = [i + 1];
    for (const [j, right] of [...b].entries()) {
      const replaced = (row[j] ?? 0) + (left === right ? 0 : 1);
      next.push(Math.min(replaced, (row[j + 1] ?? 0) + 1, (next[j] ?? 0) + 1));
    }
    row = next;
  }
  return row.at(-1) ?? 0;
}
