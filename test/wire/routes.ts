/** The declared routes as addresses that can be asked. */
import { PasswordCheck } from '../../src/accounts/authentication.ts';
import { type Method, offeredMethods, type Route, searchPath } from '../../src/hypermedia/routes.ts';
import { routesOf } from '../../src/server.ts';
import type { Services } from '../../src/services.ts';
import type { World } from './world.ts';

export interface Address {
  /** As the route was declared: below the API, below `admin:`, or from the root when it begins with a slash. */
  readonly pattern: string;
  readonly offered: readonly Method[];
  readonly route: Route;
  readonly isSearch: boolean;
}

function patternOf(route: Route): string {
  if (route.area === 'admin') return `admin:${route.path}`;
  return route.kind === 'special' && route.fromRoot ? `/${route.path}` : route.path;
}

export function addressesOf(services: Services): readonly Address[] {
  return routesOf(services.config, new PasswordCheck(services)).flatMap((route): readonly Address[] => {
    const pattern = patternOf(route);
    const own = { pattern, offered: offeredMethods(route), route, isSearch: false };
    if (route.kind !== 'list' || !route.search) return [own];
    return [own, { pattern: searchPath({ ...route, path: pattern }), offered: ['GET'], route, isSearch: true }];
  });
}

/** The path to ask for, with ids of existing objects. */
export function pathOf(pattern: string, world: Pick<World, 'idFor'>): string {
  const base = pattern.startsWith('admin:') ? '/svc-admin/api/v1/' : pattern.startsWith('/') ? '' : '/api/v1/';
  const below = pattern.replace(/^admin:/, '');
  return base + below.replace(/\{\w+\}/g, () => String(world.idFor(pattern))).replace('*', 'name');
}
