/** Structured logs: one JSON object a line, or text for people. Credentials never reach them. */
import { type DestinationStream, type Logger, type LoggerOptions, pino } from 'pino';
import type { Config } from './config.ts';

export type Log = Logger;

const SECRET_NAMES: ReadonlySet<string> = new Set([
  'authorization',
  'cookie',
  'set-cookie',
  'x-csrftoken',
  'password',
  'token',
  'compute_password',
  'compute_auth_token',
  'download_token',
]);
const NOT_LOGGED = '[not logged]';
/** Errors of libraries may hold their whole client. */
const DEEPEST = 5;

/** @param output where the lines go: standard output for a server, standard error for commands that print results */
export function createLog(
  config: Pick<Config, 'logLevel' | 'logFormat'>,
  output: NodeJS.WriteStream = process.stdout,
): Log {
  const asText = config.logFormat === 'text' || (config.logFormat === 'auto' && output.isTTY);
  const stream: DestinationStream = asText ? { write: (line) => output.write(textLine(line)) } : output;
  return pino(logOptions(config.logLevel), stream);
}

/** What every log does with what it is given. */
export function logOptions(level: string): LoggerOptions {
  return {
    level,
    // faster than pino's own `redact`, which looks for every path in every line
    formatters: { log: (members) => withoutSecrets(members, 0) },
    serializers: { err: (error: Error) => withoutSecrets(pino.stdSerializers.err(error), 0) },
    timestamp: pino.stdTimeFunctions.isoTime,
  };
}

/** A copy in which the values under secret names are not shown, however deep they lie. */
function withoutSecrets(members: object, depth: number): Record<string, unknown> {
  const shown: Record<string, unknown> = {};
  for (const [name, value] of Object.entries(members)) {
    if (SECRET_NAMES.has(name.toLowerCase())) shown[name] = NOT_LOGGED;
    else if (!isPlain(value)) shown[name] = value;
    else shown[name] = depth < DEEPEST ? withoutSecrets(value, depth + 1) : '…';
  }
  return shown;
}

/** Errors, dates and the like have their own ways of being written. */
function isPlain(value: unknown): value is object {
  if (typeof value !== 'object' || value === null) return false;
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === Object.prototype || prototype === null;
}

/** `12:30:01.123 INFO request method=GET path=/api/v1/`, and below it the stack of an error. */
function textLine(json: string): string {
  const { level, time, msg, err, pid: _pid, hostname: _hostname, ...rest }: Record<string, unknown> = JSON.parse(json);
  const label = pino.levels.labels[Number(level)] ?? String(level);
  const members = Object.entries(rest).map(([name, value]) => ` ${name}=${memberText(value)}`);
  const stack = typeof err === 'object' && err !== null && 'stack' in err ? `\n${String(err.stack)}` : '';
  return `${String(time).slice(11, 23)} ${label.toUpperCase().padEnd(5)} ${String(msg ?? '')}${members.join('')}${stack}\n`;
}

function memberText(value: unknown): string {
  return typeof value === 'string' && /^[^\s"=]+$/.test(value) ? value : JSON.stringify(value);
}
