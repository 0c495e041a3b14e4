/**
 * Declaring routes.
 *
 * Terminology
 *   list    a path that shows many items of a resource, and may create one
 *   item    a path that shows one, and may change or remove it
 *   special a path whose answer is not a resource (a token, a download, a page)
 *   within  the object that a list hangs on, such as the group of `groups/{id}/users/`
 *   call    one request, as the functions that change things see it
 */
import type { FastifyRequest } from 'fastify';
import type { RawBuilder } from 'kysely';
import type { Caller, Rule } from '../access/caller.ts';
import type { Transaction } from '../database/database.ts';
import type { Services } from '../services.ts';
import { inTransaction } from './actions.ts';
import type { BodyType } from './body.ts';
import type { Exchange } from './dispatch.ts';
import type { Filter } from './filters.ts';
import { accept, type Body, type Input, type InputFields, inspect } from './input.ts';
import type { Links } from './links.ts';
import type { Content, Schema } from './openapi-types.ts';
import type { Resource } from './resource.ts';
import type { Scope } from './statement.ts';

export type Method = 'GET' | 'POST' | 'PUT' | 'DELETE';

/** Who gets past the door of a route, before any object is looked at. */
export type Audience = 'anyone' | 'signed in' | 'staff';

export interface RouteAccess {
  readonly read: Audience;
  /** Of every method but GET, also of one that the route does not offer. */
  readonly write: Audience;
}

export interface Call {
  readonly services: Services;
  readonly caller: Caller;
  /** The numbers in the path, by name. */
  readonly path: Readonly<Record<string, number>>;
  readonly links: Links;
  readonly request: FastifyRequest;
}

/** A call that changes something: all of it happens in one transaction. */
export interface ActionCall extends Call {
  readonly transaction: Transaction;
  /** Runs when the transaction has been committed, before the answer. */
  readonly afterCommit: (work: () => Promise<void> | void) => void;
}

/** The fields of a body may depend on the path (a plugin's parameters do). */
export type InputOf<F extends InputFields> = F | ((call: Call) => Promise<F>);

/** An action whose fields are known: it reads a body and gives the work that is to be done. */
export interface Prepared<R> {
  readonly fields: InputFields;
  readonly read: (body: Body, call: Call) => Promise<() => Promise<R>>;
}

interface Action<R> {
  /** The fields as far as they are the same for every path. */
  readonly fields: InputFields;
  /** Media types that OpenAPI names, where not every one makes sense. */
  readonly bodies?: readonly BodyType[];
  readonly prepare: (call: Call) => Promise<Prepared<R>>;
}

/** A new object whose answer shows something that is never shown again, such as a token. */
export interface Created {
  readonly id: number;
  readonly shownOnce: Readonly<Record<string, unknown>>;
}

export interface Creation extends Action<number | Created> {
  /** What the caller must be allowed on the object that the list hangs on; `read` of its resource when left out. */
  readonly rule?: Rule;
}

export interface Change extends Action<void> {
  readonly rule: Rule;
}

interface RemovalBase {
  readonly rule: Rule;
  /** The work is done in the background: the answer is 202 with the item instead of 204. */
  readonly inBackground?: boolean;
}

/** As with other actions: `run` in the mechanism's transaction, or `work` in one of its own. */
export type Removal = RemovalBase &
  ({ readonly run: (call: ActionCall) => Promise<void> } | { readonly work: (call: Call) => Promise<void> });

interface ActionInput<F extends InputFields> {
  readonly input: InputOf<F>;
  /** For OpenAPI, where the input depends on the path. */
  readonly documented?: InputFields;
  /** For OpenAPI: the media types of the body, where not every one makes sense. */
  readonly bodies?: readonly BodyType[];
  /** Looks at the fields that are right by themselves, and tells which are wrong all the same (a name that is taken). */
  readonly check?: (call: Call, input: Partial<Input<F>>) => Promise<Readonly<Record<string, readonly string[]>>>;
}

interface Run<F extends InputFields, R> extends ActionInput<F> {
  readonly run: (call: ActionCall, input: Input<F>) => Promise<R>;
}

/** First asks what no transaction should wait for, such as another service; gives what is then done in the transaction. */
interface AskAndRun<F extends InputFields, R> extends ActionInput<F> {
  readonly ask: (call: Call, input: Input<F>) => Promise<(call: ActionCall) => Promise<R>>;
}

/** Makes its own transaction: where bytes move together with rows (`storage/intents.ts`). */
interface Work<F extends InputFields, R> extends ActionInput<F> {
  readonly work: (call: Call, input: Input<F>) => Promise<R>;
}

type ActionDeclaration<F extends InputFields, R> = Run<F, R> | AskAndRun<F, R> | Work<F, R>;

function action<F extends InputFields, R>(declaration: ActionDeclaration<F, R>): Action<R> {
  const { input, documented, bodies, check } = declaration;
  return {
    fields: documented ?? (typeof input === 'function' ? {} : input),
    ...(bodies !== undefined && { bodies }),
    prepare: async (call) => {
      const fields = typeof input === 'function' ? await input(call) : input;
      return {
        fields,
        read: async (body, asking) => {
          const { values, problems } = inspect(fields, body);
          const further = check ? await check(asking, accept<F>({ values, problems: {} })) : {};
          const accepted = accept<F>({ values, problems: { ...further, ...problems } });
          if ('work' in declaration) return () => declaration.work(asking, accepted);
          if ('run' in declaration) return () => inTransaction(asking, (acting) => declaration.run(acting, accepted));
          const run = await declaration.ask(asking, accepted);
          return () => inTransaction(asking, run);
        },
      };
    },
  };
}

/** How a list makes an object; `run` gives the new object's id. */
export function creation<F extends InputFields>(
  declaration: ActionDeclaration<F, number | Created> & { readonly rule?: Rule },
): Creation {
  return { ...action(declaration), ...(declaration.rule && { rule: declaration.rule }) };
}

/** How an item is changed, and who may. */
export function change<F extends InputFields>(
  declaration: ActionDeclaration<F, void> & { readonly rule: Rule },
): Change {
  return { ...action(declaration), rule: declaration.rule };
}

export interface ListLink {
  readonly rel: string;
  /** Path below the API, with names in braces: numbers of the path, fields of the object that the list hangs on, `caller`. */
  readonly to: string;
  readonly shownTo?: 'signed in' | 'staff';
}

export interface Search {
  readonly filters: readonly Filter[];
  /** Orders that a query parameter can choose instead of the list's own. */
  readonly sort?: { readonly parameter: string; readonly orders: Readonly<Record<string, RawBuilder<unknown>>> };
  /** What a search shows, where it is not what the list shows. */
  readonly where?: (scope: Scope) => RawBuilder<unknown>;
  readonly operation?: string;
  readonly read?: Audience;
}

export interface Within {
  readonly resource: Resource;
  /** Its id's name in the path. */
  readonly parameter: string;
}

interface RouteBase {
  /** Path below the API (or below the administration API), with the names of numbers in braces. */
  readonly path: string;
  readonly area?: 'admin';
  readonly access: RouteAccess;
  /** Running programs may use it with their job's token; other routes are closed to them. */
  readonly jobs?: boolean;
}

/**
 * Where the members are few among many rows, and an index has these in the order of the list, PostgreSQL likes to walk the whole
 * index. Such a list orders by an expression that the index does not have, such as `name || ''`.
 */
export type Order = RawBuilder<unknown> | ((scope: Scope) => RawBuilder<unknown>);

export interface ListRoute extends RouteBase {
  readonly kind: 'list';
  readonly of: Resource;
  readonly within?: Within;
  /** Runs once the caller is known to be allowed to see the list: for members that come to be by being looked at. */
  readonly beforeShown?: (call: Call) => Promise<void>;
  /** Where its members are looked for, if the tables of the resource are not the quickest way. The resource's aliases hold. */
  readonly from?: RawBuilder<unknown>;
  readonly where?: (scope: Scope) => RawBuilder<unknown>;
  readonly order: Order;
  readonly links?: readonly ListLink[];
  readonly search?: Search;
  readonly create?: Creation;
  /** Names of the template; those of the creation's input when left out. */
  readonly template?: readonly string[] | ((call: Call) => Promise<readonly string[]>);
  /** Operation ids where they do not follow from the path. */
  readonly operations?: Readonly<Partial<Record<Method, string>>>;
}

export interface ItemRoute extends RouteBase {
  readonly kind: 'item';
  readonly of: Resource;
  /** Any number in the path means the same object. */
  readonly singleton?: boolean;
  readonly change?: Change;
  readonly remove?: Removal;
  readonly template?: readonly string[];
  readonly operations?: Readonly<Partial<Record<Method, string>>>;
}

/** One method of a special route. It writes the answer itself, or returns what is sent as JSON. */
export interface SpecialMethod {
  readonly operation?: string;
  readonly summary: string;
  /** For OpenAPI: the query parameters, the body, and the answer; when left out, 200 with a file (behind `*`) or some JSON object. */
  readonly query?: Readonly<Record<string, Schema>>;
  readonly body?: Content;
  readonly answer?: (Content & { readonly status?: number }) | 'nothing';
  readonly handle: (exchange: Exchange) => Promise<unknown>;
}

export interface SpecialRoute extends RouteBase {
  readonly kind: 'special';
  /** Below the server's root instead of the API. */
  readonly fromRoot?: boolean;
  readonly methods: Readonly<Partial<Record<Method, SpecialMethod>>>;
  /** How it deals with `Accept`: it ignores it (the answer has one form), or only speaks JSON. */
  readonly representation: 'its own' | 'JSON';
  /** `?download_token=` counts as credentials here. */
  readonly downloadToken?: boolean;
  /** What OPTIONS answers. */
  readonly describe?: () => object;
  /** Left out of the API description. */
  readonly undocumented?: boolean;
}

export type Route = ListRoute | ItemRoute | SpecialRoute;

export const list = (declaration: Omit<ListRoute, 'kind'>): ListRoute => ({ kind: 'list', ...declaration });
export const item = (declaration: Omit<ItemRoute, 'kind'>): ItemRoute => ({ kind: 'item', ...declaration });
export const special = (declaration: Omit<SpecialRoute, 'kind'>): SpecialRoute => ({ kind: 'special', ...declaration });

/** Routes that running programs may use too, each within its own feed. */
export const openToJobs = (routes: readonly Route[]): readonly Route[] =>
  routes.map((route) => ({ ...route, jobs: true }));

/** The methods that a route offers, in the order of `Allow`. */
export function offeredMethods(route: Route): readonly Method[] {
  if (route.kind === 'list') return route.create ? ['GET', 'POST'] : ['GET'];
  if (route.kind === 'item')
    return ['GET', ...(route.change ? ['PUT' as const] : []), ...(route.remove ? ['DELETE' as const] : [])];
  const order: readonly Method[] = ['GET', 'POST', 'PUT', 'DELETE'];
  return order.filter((method) => route.methods[method]);
}

/** The route of a list's search, declared with the list. */
export function searchPath(route: ListRoute): string {
  return `${route.path}search/`;
}

/** Names in braces. */
export function pathNames(path: string): readonly string[] {
  return [...path.matchAll(/\{(\w+)\}/g)].map((match) => match[1] ?? '');
}

export const PUBLIC: RouteAccess = { read: 'anyone', write: 'anyone' };
export const SIGNED_IN: RouteAccess = { read: 'signed in', write: 'signed in' };
export const STAFF: RouteAccess = { read: 'staff', write: 'staff' };
