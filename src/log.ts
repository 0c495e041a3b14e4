/** Structured logs: one JSON object a line, or text on a terminal. Credentials never reach them. */
import { type Logger, pino } from 'pino';
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

export function createLog(config: Pick<Config, 'logLevel'>): Log {
  const paths = SECRET_FIELDS.flatMap((name) => [name, `*.${name}`, `*.headers.${name}`]);
  return pino({
    level: config.logLevel,
    redact: { paths, censor: '[not logged]' },
    timestamp: pino.stdTimeFunctions.isoTime,
  });
}
