/** Lists, searches, items and special routes as endpoints. */
import type { Kysely } from 'kysely';
import { anyone, type Caller, ROLES, type Role } from '../access/caller.ts';
import { bodyOptions, inTransaction, withBody } from './actions.ts';
import type { NamedLink } from './answer.ts';
import { addressOf, type Endpoint, type Exchange, queryOf, sendAnswer } from './dispatch.ts';
import { fillPath } from './links.ts';
import { pageLinks, readPage } from './paging.ts';
import type { Resource } from './resource.ts';
import {
  type Call,
  type Created,
  type ItemRoute,
  type ListRoute,
  offeredMethods,
  type Prepared,
  type SpecialRoute,
  searchPath,
} from './routes.ts';
import { ItemSelection, ListSelection, readFilters } from './selection.ts';
import { Shape } from './shape.ts';
import type { Row } from './statement.ts';

/** A resource's writers, one for each role. */
class Shapes {
  readonly #shapes: ReadonlyMap<Role, Shape>;
  readonly #anonymous: Shape;
  constructor(of: Resource) {
    this.#anonymous = new Shape(of, 'anonymous');
    this.#shapes = new Map(ROLES.map((role) => [role, new Shape(of, role)]));
  }
  for(caller: Caller): Shape {
    return this.#shapes.get(caller.role) ?? this.#anonymous;
  }
}

/** Answers with an object that has just been made. */
async function sendCreated(
  exchange: Exchange,
  selection: ItemSelection,
  shapes: Shapes,
  of: Resource,
  created: number | Created,
): Promise<unknown> {
  const { call, links } = exchange;
  const { id, shownOnce } = typeof created === 'number' ? { id: created, shownOnce: {} } : created;
  const row = { ...(await selection.find(call.services.pool, call.caller, id)), ...shownOnce };
  exchange.reply.header('location', links.to(of.url.replace('{}', String(row.url))));
  return sendAnswer(exchange, 201, { kind: 'item', shape: shapes.for(call.caller), row, template: null });
}

function shownLinks(route: ListRoute, call: Call, parent: Row | null): readonly NamedLink[] {
  const { caller, links, path } = call;
  return (route.links ?? [])
    .filter(
      ({ shownTo }) => shownTo === undefined || (shownTo === 'staff' ? caller.isStaff : caller.role !== 'anonymous'),
    )
    .map(({ rel, to }) => ({ rel, href: links.to(fillPath(to, { ...parent, ...path, caller: caller.id ?? 0 })) }));
}

async function templateOf(route: ListRoute, call: Call): Promise<readonly string[] | null> {
  if (typeof route.template === 'function') return route.template(call);
  return route.template ?? (route.create ? Object.keys(route.create.fields) : null);
}

/** The parent must be there and readable before anything of it is shown, or made in it. */
function parentSelection(database: Kysely<never>, route: ListRoute, rule: 'read' | 'create'): ItemSelection | null {
  if (!route.within) return null;
  return new ItemSelection(database, route.within.resource, rule === 'create' ? (route.create?.rule ?? null) : null);
}

async function requireParent(selection: ItemSelection | null, route: ListRoute, call: Call): Promise<Row | null> {
  if (selection === null || !route.within) return null;
  return selection.find(call.services.pool, call.caller, call.path[route.within.parameter] ?? 0);
}

export function listEndpoint(database: Kysely<never>, route: ListRoute): Endpoint {
  const selection = new ListSelection(database, {
    of: route.of,
    from: route.from,
    where: route.where,
    order: route.order,
  });
  // whoever made an object sees it once, even a new account that is not logged in yet
  const itemSelection = new ItemSelection(database, route.of, anyone);
  const readable = parentSelection(database, route, 'read');
  const creatable = parentSelection(database, route, 'create');
  const shapes = new Shapes(route.of);
  const searchNames = route.search?.filters.filter((filter) => !filter.unlisted).map((filter) => filter.name) ?? [];
  if (route.search?.sort) searchNames.push(route.search.sort.parameter);

  const show = async (exchange: Exchange): Promise<unknown> => {
    const { call, links, request } = exchange;
    const parent = await requireParent(readable, route, call);
    await route.beforeShown?.(call);
    const query = queryOf(request);
    const page = readPage(query, call.services.config.pageLimitMax);
    const { rows, total } = await selection.find(call.services.pool, call.caller, call.path, page);
    const base = route.area === 'admin' ? links.admin : links.api;
    return sendAnswer(exchange, 200, {
      kind: 'list',
      shape: shapes.for(call.caller),
      rows,
      total,
      pages: pageLinks(withoutQuery(addressOf(request, links)), query, page, total),
      links: shownLinks(route, call, parent),
      search: route.search ? { href: base + fillPath(searchPath(route), call.path), names: searchNames } : null,
      template: await templateOf(route, call),
    });
  };

  const create = async (exchange: Exchange): Promise<unknown> => {
    const { call } = exchange;
    if (!route.create) throw new Error(`${route.path} creates nothing`);
    const prepared = await route.create.prepare(call);
    const created = await withBody(exchange, prepared.fields, bodyOptions(call), async (body) => {
      const run = await prepared.read(body, call);
      await requireParent(creatable, route, call);
      return run();
    });
    return sendCreated(exchange, itemSelection, shapes, route.of, created);
  };

  return {
    offered: offeredMethods(route),
    access: route.access,
    representation: 'negotiated',
    downloadToken: false,
    jobs: route.jobs ?? false,
    handle: (exchange, method) => (method === 'POST' ? create(exchange) : show(exchange)),
  };
}

function withoutQuery(address: string): string {
  return address.split('?')[0] ?? address;
}

export function searchEndpoint(database: Kysely<never>, route: ListRoute): Endpoint {
  const { search } = route;
  if (!search) throw new Error(`${route.path} has no search`);
  const selection = new ListSelection(database, {
    of: route.of,
    from: route.from,
    where: search.where ?? route.where,
    order: route.order,
    search,
  });
  const readable = parentSelection(database, route, 'read');
  const shapes = new Shapes(route.of);
  const show = async (exchange: Exchange): Promise<unknown> => {
    const { call, links, request } = exchange;
    await requireParent(readable, route, call);
    await route.beforeShown?.(call);
    const query = queryOf(request);
    const page = readPage(query, call.services.config.pageLimitMax);
    const filters = readFilters(search.filters, query);
    const wanted = search.sort ? (query.get(search.sort.parameter) ?? '') : '';
    const sort = search.sort && Object.hasOwn(search.sort.orders, wanted) ? wanted : '';
    const { rows, total } = await selection.find(call.services.pool, call.caller, call.path, page, filters, sort);
    const pages = pageLinks(withoutQuery(addressOf(request, links)), query, page, total);
    return sendAnswer(exchange, 200, {
      kind: 'list',
      shape: shapes.for(call.caller),
      rows,
      total,
      pages,
      links: [],
      search: null,
      template: null,
    });
  };
  const read = search.read ?? route.access.read;
  return {
    offered: ['GET'],
    access: { ...route.access, read },
    representation: 'negotiated',
    downloadToken: false,
    jobs: route.jobs ?? false,
    handle: show,
  };
}

export function itemEndpoint(database: Kysely<never>, route: ItemRoute): Endpoint {
  const readable = new ItemSelection(database, route.of, null);
  const changeable = route.change ? new ItemSelection(database, route.of, route.change.rule) : null;
  const removable = route.remove ? new ItemSelection(database, route.of, route.remove.rule) : null;
  const shapes = new Shapes(route.of);
  const template = route.template ?? (route.change ? Object.keys(route.change.fields) : null);
  const idOf = (call: Call): number => (route.singleton ? 1 : (call.path.id ?? 0));

  const show = async (exchange: Exchange): Promise<unknown> => {
    const { call } = exchange;
    const row = await readable.find(call.services.pool, call.caller, idOf(call));
    return sendAnswer(exchange, 200, { kind: 'item', shape: shapes.for(call.caller), row, template });
  };

  const sendItem = async (exchange: Exchange, status: number, selection: ItemSelection): Promise<unknown> => {
    const { call } = exchange;
    const row = await selection.find(call.services.pool, call.caller, idOf(call));
    return sendAnswer(exchange, status, { kind: 'item', shape: shapes.for(call.caller), row, template: null });
  };

  const put = async (exchange: Exchange): Promise<unknown> => {
    const { call } = exchange;
    if (!route.change || !changeable) throw new Error(`${route.path} cannot be changed`);
    await changeable.find(call.services.pool, call.caller, idOf(call));
    const prepared: Prepared<void> = await route.change.prepare(call);
    await withBody(exchange, prepared.fields, bodyOptions(call), async (body) => (await prepared.read(body, call))());
    return sendItem(exchange, 200, changeable);
  };

  const remove = async (exchange: Exchange): Promise<unknown> => {
    const { call } = exchange;
    if (!route.remove || !removable) throw new Error(`${route.path} cannot be removed`);
    await removable.find(call.services.pool, call.caller, idOf(call));
    if ('work' in route.remove) await route.remove.work(call);
    else await inTransaction(call, route.remove.run);
    return route.remove.inBackground ? sendItem(exchange, 202, removable) : exchange.reply.code(204).send();
  };

  return {
    offered: offeredMethods(route),
    access: route.access,
    representation: 'negotiated',
    downloadToken: false,
    jobs: route.jobs ?? false,
    handle: (exchange, method) =>
      method === 'PUT' ? put(exchange) : method === 'DELETE' ? remove(exchange) : show(exchange),
  };
}

export function specialEndpoint(route: SpecialRoute): Endpoint {
  return {
    offered: offeredMethods(route),
    access: route.access,
    representation: route.representation,
    downloadToken: route.downloadToken ?? false,
    jobs: route.jobs ?? false,
    ...(route.describe && { describe: route.describe }),
    handle: async (exchange, method) => {
      const declared = route.methods[method];
      if (!declared) throw new Error(`${route.path} does not offer ${method}`);
      const answer = await declared.handle(exchange);
      return answer === undefined || answer === exchange.reply ? exchange.reply : exchange.reply.send(answer);
    },
  };
}
