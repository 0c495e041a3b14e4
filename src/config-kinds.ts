/** The kinds of value that a setting can have: how each is read from text and what a wrong one should have been. */
import { resolve } from 'node:path';
import ipaddr from 'ipaddr.js';

/** Whether wrong use is met with openness (a developer's machine) or with strictness. */
export type Environment = 'development' | 'production';

export interface Setting<T> {
  /** The value that the text stands for; undefined when it is not what `expected` says. */
  readonly read: (text: string) => T | undefined;
  /** What the variable should hold, in words that follow "should be". */
  readonly expected: string;
  /** Value when the variable is absent or empty. */
  readonly fallback: (environment: Environment) => T;
  /** The same in words, for the documentation. */
  readonly fallbackText: string;
  readonly meaning: string;
  readonly example: string;
  /** Its value is never shown, and it can also be given as a file's content by `<NAME>_FILE`. */
  readonly secret: boolean;
  /** A second, widely used name of the same setting. */
  readonly alias: string | null;
}

type About = { meaning: string; example: string; secret?: boolean; alias?: string };

interface Kind<T> {
  readonly read: (text: string) => T | undefined;
  readonly expected: string;
}

/** A setting with one default for all. */
export function setting<T>(kind: Kind<T>, fallback: T, about: About): Setting<T> {
  return settingWith(kind, () => fallback, `\`${String(fallback)}\``, about);
}

/** A setting that may be left out, and is null then. */
export function optional<T>(kind: Kind<T>, fallbackText: string, about: About): Setting<T | null> {
  return settingWith<T | null>(kind, () => null, fallbackText, about);
}

/** A setting whose default depends on something else. */
export function settingWith<T>(
  kind: Kind<T>,
  fallback: (environment: Environment) => T,
  fallbackText: string,
  about: About,
): Setting<T> {
  return { secret: false, alias: null, ...about, read: kind.read, expected: kind.expected, fallback, fallbackText };
}

export function text(expected: string, pattern: RegExp): Kind<string> {
  return { expected, read: (value) => (pattern.test(value) ? value : undefined) };
}

export function integer(minimum: number, maximum: number): Kind<number> {
  return {
    expected: `a whole number from ${minimum} to ${maximum}`,
    read(value) {
      const number = /^\d{1,16}$/.test(value) ? Number(value) : Number.NaN;
      return number >= minimum && number <= maximum ? number : undefined;
    },
  };
}

export function choice<const T extends string>(...values: readonly T[]): Kind<T> {
  return {
    expected: `one of ${values.join(', ')}`,
    read: (value) => values.find((each) => each === value),
  };
}

export const truth: Kind<boolean> = {
  expected: 'true or false',
  read: (value) => (value === 'true' ? true : value === 'false' ? false : undefined),
};

/** A path, made absolute. */
export const path: Kind<string> = {
  expected: 'the path of a folder',
  read: (value) => (value.includes('\0') ? undefined : resolve(value)),
};

/** A URL with one of the given schemes; without the slashes at its end. */
export function url(expected: string, ...schemes: readonly string[]): Kind<string> {
  return {
    expected,
    read(value) {
      if (!URL.canParse(value)) return undefined;
      const { protocol, hash } = new URL(value);
      return schemes.includes(protocol) && hash === '' ? value.replace(/\/+$/, '') : undefined;
    },
  };
}

function list(value: string): string[] {
  return value
    .split(',')
    .map((item) => item.trim())
    .filter((item) => item !== '');
}

export const networks: Kind<readonly string[]> = {
  expected: 'a comma-separated list of IP addresses and networks, such as 10.0.0.1,192.168.0.0/16',
  read(value) {
    const items = list(value);
    return items.every((item) => ipaddr.isValid(item) || ipaddr.isValidCIDR(item)) ? items : undefined;
  },
};

/** `*` for all, else the items, each of which must match. */
export function everyOr(expected: string, isItem: (item: string) => boolean): Kind<'*' | readonly string[]> {
  return {
    expected: `* or a comma-separated list of ${expected}`,
    read(value) {
      const items = list(value);
      if (items.includes('*')) return items.length === 1 ? '*' : undefined;
      return items.every(isItem) ? items : undefined;
    },
  };
}

export function isOrigin(item: string): boolean {
  return URL.canParse(item) && new URL(item).origin === item && item.startsWith('http');
}

export function isHostName(item: string): boolean {
  return /^(\.?[a-z0-9]([a-z0-9.-]*[a-z0-9])?|\[[0-9a-f:.]+\])(:\d{1,5})?$/i.test(item);
}
