/** Paths, operation ids, tags and summaries of the API description. Generated clients are built on the ids: they never change. */
import { API_PREFIX } from './links.ts';
import type { Method, Route } from './routes.ts';

/** What an operation does, as its id and its summary say it. */
export type Verb = 'list' | 'search' | 'create' | 'retrieve' | 'update' | 'destroy';

/** Operation ids of the administration are the same whatever its prefix is. */
const ADMIN_ID_PREFIX = 'svc-admin/api/v1/';

/** The absolute path of a route, or of its search; a free end (`*`) is written as the reference writes it. */
export function documentedPath(route: Route, path: string, adminPrefix: string): string {
  const below = path.replace(/\*$/, '.');
  if (route.kind === 'special' && route.fromRoot) return `/${below}`;
  return route.area === 'admin' ? `${adminPrefix}api/v1/${below}` : API_PREFIX + below;
}

function wordsOf(path: string): readonly string[] {
  const names = path.split('/').map((segment) => segment.replace(/\{\w+\}/g, ''));
  return names.filter((name) => name !== '').map((name) => name.replaceAll('-', '_').replace(/^\*$/, '.'));
}

function camelCase(words: readonly string[]): string {
  return words.join('_').replace(/_+(\w)/g, (_whole, letter: string) => letter.toUpperCase());
}

/**
 * The words of the path without its numbers, and the verb: `plugins_instances_create`.
 * Those of the administration are in camel case, as the commissioned interface has them.
 */
export function operationId(route: Route, path: string, verb: Verb): string {
  const end = verb === 'search' ? 'list' : verb;
  if (route.area === 'admin') return camelCase([...wordsOf(ADMIN_ID_PREFIX + path), end]);
  const words = wordsOf(path);
  return [...(words.length === 0 ? ['root'] : words), end].join('_');
}

/** The first word of the path groups operations. */
export function tagOf(route: Route, path: string): string {
  if (route.area === 'admin') return 'administration';
  return wordsOf(path)[0]?.replaceAll('_', '-') ?? 'feeds';
}

export function verbOf(route: Route, method: Method): Verb {
  if (method === 'POST') return 'create';
  if (method === 'PUT') return 'update';
  if (method === 'DELETE') return 'destroy';
  return route.kind === 'list' ? 'list' : 'retrieve';
}

function plural(name: string): string {
  if (/(s|series)$/i.test(name)) return name;
  return /[^aeiou]y$/.test(name) ? `${name.slice(0, -1)}ies` : `${name}s`;
}

function one(name: string): string {
  return `${/^[aeio]/i.test(name) ? 'an' : 'a'} ${name}`;
}

/** @param within what the list hangs on, such as `feed` */
export function summaryOf(verb: Verb, name: string, within: string | undefined): string {
  const place = within === undefined ? '' : ` of ${one(within)}`;
  switch (verb) {
    case 'list':
      return `List ${plural(name)}${place}`;
    case 'search':
      return `Search ${plural(name)}${place}`;
    case 'create':
      return `Create ${one(name)}${place}`;
    case 'retrieve':
      return `Show ${one(name)}`;
    case 'update':
      return `Change ${one(name)}`;
    case 'destroy':
      return `Delete ${one(name)}`;
  }
}
