/** Puts declared routes into the HTTP server: their patterns, their search routes, and the suffixes of `wire.md` section 2. */
import { METHODS } from 'node:http';
import type { FastifyInstance } from 'fastify';
import type { Kysely } from 'kysely';
import { type Context, type Endpoint, handlerFor } from './dispatch.ts';
import { itemEndpoint, listEndpoint, searchEndpoint, specialEndpoint } from './endpoints.ts';
import { API_PREFIX } from './links.ts';
import { type Route, searchPath } from './routes.ts';

/** CONNECT asks for a tunnel and never becomes a request. */
const REFUSABLE_METHODS = METHODS.filter((method) => method !== 'CONNECT');

/** Makes known to the framework what no route offers, so that a route can answer 405 to it. */
export function acceptEveryMethod(app: FastifyInstance): void {
  for (const method of REFUSABLE_METHODS) {
    if (!app.supportedMethods.includes(method)) app.addHttpMethod(method);
  }
}

/** The administration API always answers under this prefix too. */
export const FIXED_ADMIN_PREFIX = '/chris-admin/';

/** Every prefix under which the administration answers, each once. */
export function adminPrefixes(configured: string): readonly string[] {
  return [...new Set([configured, FIXED_ADMIN_PREFIX])];
}

interface MountedPath {
  readonly route: Route;
  readonly endpoint: Endpoint;
  /** Path as declared, below its base. */
  readonly path: string;
}

function endpointsOf(database: Kysely<never>, route: Route): readonly MountedPath[] {
  if (route.kind === 'item') return [{ route, path: route.path, endpoint: itemEndpoint(database, route) }];
  if (route.kind === 'special') return [{ route, path: route.path, endpoint: specialEndpoint(route) }];
  const list = { route, path: route.path, endpoint: listEndpoint(database, route) };
  if (!route.search) return [list];
  return [list, { route, path: searchPath(route), endpoint: searchEndpoint(database, route) }];
}

function basesOf(route: Route, adminPrefix: string): readonly string[] {
  if (route.kind === 'special' && route.fromRoot) return ['/'];
  if (route.area !== 'admin') return [API_PREFIX];
  return adminPrefixes(adminPrefix).map((prefix) => `${prefix}api/v1/`);
}

/** `groups/{id}/users/` as a pattern of the router: numbers are runs of digits, `*` is anything. */
function pattern(path: string): string {
  return path.replace(/\{(\w+)\}/g, ':$1(^\\d+$)');
}

export function mountRoutes(app: FastifyInstance, routes: readonly Route[], context: Context): void {
  const database = context.services.database.withTables<never>();
  for (const route of routes) {
    for (const { path, endpoint } of endpointsOf(database, route)) {
      for (const base of basesOf(route, context.services.config.adminPrefix)) {
        app.route({
          method: [...app.supportedMethods],
          url: base + pattern(path),
          handler: handlerFor(endpoint, context),
        });
      }
    }
  }
}

/**
 * Paths that may carry a suffix such as `.json` in place of their final slash, as regular expressions of the path without it.
 * Downloads may not: what follows their id is a file name.
 */
function suffixable(routes: readonly Route[]): readonly RegExp[] {
  const paths = routes
    .filter((route) => route.kind !== 'special' && route.area !== 'admin')
    .flatMap((route) => (route.kind === 'list' && route.search ? [route.path, searchPath(route)] : [route.path]));
  return paths.map((path) => new RegExp(`^${API_PREFIX}${path.replace(/\{\w+\}/g, '\\d+')}$`));
}

/** Turns `/api/v1/groups.json?x=1` into `/api/v1/groups/?x=1&format=json`; leaves all other addresses alone. */
export function suffixRewriter(routes: readonly Route[]): (url: string) => string {
  const known = suffixable(routes);
  return (url) => {
    const match = /^([^?]*)\.([a-z]+)\/?(?:\?(.*))?$/.exec(url);
    if (!match) return url;
    const [, path = '', suffix = '', query = ''] = match;
    if (!known.some((expression) => expression.test(`${path}/`))) return url;
    return `${path}/?${query === '' ? '' : `${query}&`}format=${suffix}`;
  };
}
