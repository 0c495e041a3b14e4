/** What the server and the supervisor of a program tell each other, checked on both sides. */

export interface SupervisorOrder {
  /** Absolute path of the job folder. */
  readonly folder: string;
  readonly workingDirectory: string;
  readonly command: string;
  readonly arguments: readonly string[];
  readonly environment: Readonly<Record<string, string>>;
  readonly logLimitBytes: number;
  /** Between asking the program to end and ending it. */
  readonly graceSeconds: number;
}

export interface ExitRecord {
  /** Exit status; null when a signal ended it or it could not be started. */
  readonly code: number | null;
  readonly signal: string | null;
  /** Why the program could not be started; null when it was. */
  readonly error: string | null;
  /** ISO 8601. */
  readonly startedAt: string;
  readonly endedAt: string;
}

/** @throws {SyntaxError} for an incomplete or wrong order */
export function parseOrder(text: string): SupervisorOrder {
  const value = parseObject(text);
  const environment = Object.entries(objectOf(value, 'environment'));
  return {
    folder: textOf(value, 'folder'),
    workingDirectory: textOf(value, 'workingDirectory'),
    command: textOf(value, 'command'),
    arguments: listOf(value, 'arguments').map(String),
    environment: Object.fromEntries(environment.map(([name, content]) => [name, String(content)])),
    logLimitBytes: numberOf(value, 'logLimitBytes'),
    graceSeconds: numberOf(value, 'graceSeconds'),
  };
}

/** @throws {SyntaxError} */
export function parseExit(text: string): ExitRecord {
  const value = parseObject(text);
  return {
    code: value.code === null ? null : numberOf(value, 'code'),
    signal: value.signal === null ? null : textOf(value, 'signal'),
    error: value.error === null ? null : textOf(value, 'error'),
    startedAt: textOf(value, 'startedAt'),
    endedAt: textOf(value, 'endedAt'),
  };
}

function parseObject(text: string): Record<string, unknown> {
  return asObject(JSON.parse(text), 'the text');
}

function asObject(value: unknown, name: string): Record<string, unknown> {
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    throw new SyntaxError(`${name} is no object`);
  return Object.fromEntries(Object.entries(value));
}

function objectOf(object: Record<string, unknown>, name: string): Record<string, unknown> {
  return asObject(object[name], name);
}

function listOf(object: Record<string, unknown>, name: string): unknown[] {
  const value = object[name];
  if (!Array.isArray(value)) throw new SyntaxError(`${name} is no list`);
  return value;
}

function textOf(object: Record<string, unknown>, name: string): string {
  const value = object[name];
  if (typeof value !== 'string') throw new SyntaxError(`${name} is no text`);
  return value;
}

function numberOf(object: Record<string, unknown>, name: string): number {
  const value = object[name];
  if (typeof value !== 'number') throw new SyntaxError(`${name} is no number`);
  return value;
}
