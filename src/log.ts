/** Structured logs: one JSON object a line, or text for people. Credentials never reach them. */
import { type DestinationStream, type Logger, pino } from 'pino';
import type { Config } from './config.ts';

export type Log = Logger;

const SECRET_FIELDS = [
  'authorization',
  'cookie',
  'password',
  'token',
  'compute_password',
  'compute_auth_token',
  'download_token',
];

/** @param output where the lines go: standard output for a server, standard error for commands that print results */
export function createLog(
  config: Pick<Config, 'logLevel' | 'logFormat'>,
  output: NodeJS.WriteStream = process.stdout,
): Log {
  const paths = [
    ...SECRET_FIELDS.flatMap((name) => [name, `*.${name}`, `*.headers.${name}`]),
    'headers["x-csrftoken"]',
    '*.headers["x-csrftoken"]',
  ];
  const asText = config.logFormat === 'text' || (config.logFormat === 'auto' && output.isTTY);
  const stream: DestinationStream = asText ? { write: (line) => output.write(textLine(line)) } : output;
  return pino(
    {
      level: config.logLevel,
      redact: { paths, censor: '[not logged]' },
      timestamp: pino.stdTimeFunctions.isoTime,
    },
    stream,
  );
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
