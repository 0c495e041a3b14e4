/**
 * The order of checks (`wire.md` section 1), in one place for every route:
 * representation → credentials → audience of the route → method → object → object's rule → body → fields → work.
 */
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { Caller } from '../access/caller.ts';
import type { Services } from '../services.ts';
import { type Answer, render } from './answer.ts';
import { Forbidden, MethodNotAllowed, NotAuthenticated, NotFound, RequestError } from './errors.ts';
import { asRequestError } from './failures.ts';
import { PAGE_SECURITY_POLICY } from './html.ts';
import type { Links } from './links.ts';
import { DEFAULT_REPRESENTATION, HTML, JSON_TYPE, negotiate, type Representation } from './negotiation.ts';
import type { Audience, Call, Method, RouteAccess } from './routes.ts';

/** Checks credentials; the accounts subject provides it. */
export interface Authenticator {
  /** @throws {NotAuthenticated} when credentials are given that do not check out */
  authenticate(request: FastifyRequest, options: { downloadToken: boolean }): Promise<Caller>;
  /** A download token opens one download: nothing for other credentials. @throws {NotAuthenticated} when another was faster */
  useUp(caller: Caller): Promise<void>;
  /** Whether a session's writing request proves that our own page made it. @param field `csrfmiddlewaretoken` of a form */
  hasCsrfProof(request: FastifyRequest, field: unknown): boolean;
}

/** What all routes of one server share. */
export interface Context {
  readonly services: Services;
  readonly authenticator: Authenticator;
  readonly linksFor: (request: FastifyRequest) => Links;
}

/** One request on its way through the checks. */
export interface Exchange {
  readonly context: Context;
  readonly request: FastifyRequest;
  readonly reply: FastifyReply;
  readonly links: Links;
  readonly representation: Representation;
  readonly call: Call;
}

/** What a declared route becomes. */
export interface Endpoint {
  readonly offered: readonly Method[];
  readonly access: RouteAccess;
  readonly representation: 'negotiated' | 'its own' | 'JSON';
  readonly downloadToken: boolean;
  /** Running programs may use it. */
  readonly jobs: boolean;
  /** What OPTIONS answers, if it says more than `Allow`. */
  readonly describe?: () => object;
  readonly handle: (exchange: Exchange, method: Method) => Promise<unknown>;
}

/** The part of an address after `?`. */
export function queryOf(request: FastifyRequest): URLSearchParams {
  const mark = request.url.indexOf('?');
  return new URLSearchParams(mark < 0 ? '' : request.url.slice(mark + 1));
}

/** The address as received, without the secrets it may hold. */
export function addressOf(request: FastifyRequest, links: Links): string {
  return (
    links.origin +
    (request.originalUrl ?? request.url).replace(/([?&])download_token=[^&]*&?/g, '$1').replace(/[?&]$/, '')
  );
}

function formatOf(request: FastifyRequest): string | null {
  return request.url.includes('format=') ? (queryOf(request).getAll('format').at(-1) ?? null) : null;
}

function representationFor(endpoint: Endpoint, request: FastifyRequest): Representation {
  const { accept } = request.headers;
  if (endpoint.representation === 'negotiated') return negotiate(accept, formatOf(request));
  if (endpoint.representation === 'JSON') negotiateJsonOnly(accept);
  return { type: JSON_TYPE, indent: 0 };
}

function negotiateJsonOnly(accept: string | undefined): void {
  if (accept !== undefined && accept !== '') negotiate(accept, 'json');
}

/** A job's token opens only what was opened to jobs. @throws {Forbidden} */
function admitJob(endpoint: Endpoint, caller: Caller): void {
  if (caller.role === 'job' && !endpoint.jobs)
    throw new Forbidden(
      'The token of a running job reaches its own feed only, and only its feed and plugin instances.',
    );
}

/** @throws {NotAuthenticated} {Forbidden} */
function admit(audience: Audience, caller: Caller): void {
  if (audience === 'anyone') return;
  if (caller.role === 'anonymous') throw new NotAuthenticated();
  if (audience === 'staff' && !caller.isStaff) throw new Forbidden('Only staff may do this.');
}

const FORM = /^(application\/x-www-form-urlencoded|multipart\/form-data)/i;

/** Whether the proof may stand in the body, which is read later; nobody reads the body of a DELETE. */
function mayProveByForm({ method, headers }: FastifyRequest): boolean {
  return method !== 'DELETE' && FORM.test(headers['content-type'] ?? '');
}

/** @throws {Forbidden} */
function requireCsrfProof(exchange: Exchange): void {
  const { request, context, call } = exchange;
  if (call.caller.credentials !== 'session' || mayProveByForm(request)) return;
  if (!context.authenticator.hasCsrfProof(request, undefined)) throw new Forbidden(CSRF_MISSING);
}

const CSRF_MISSING =
  'The CSRF proof is missing or wrong: send the value of the cookie csrftoken in the header X-CSRFToken or the form field csrfmiddlewaretoken.';

/** The second half of the check, for forms. @throws {Forbidden} */
export function requireFormCsrfProof(exchange: Exchange, field: unknown): void {
  const { request, context, call } = exchange;
  if (call.caller.credentials !== 'session' || !mayProveByForm(request)) return;
  if (!context.authenticator.hasCsrfProof(request, field)) throw new Forbidden(CSRF_MISSING);
}

function pathOf(request: FastifyRequest): Record<string, number> {
  const path: Record<string, number> = {};
  for (const [name, text] of Object.entries(request.params ?? {}))
    path[name] = Math.min(Number(text), Number.MAX_SAFE_INTEGER);
  return path;
}

/** What a route answers under `Allow`. */
function allowedMethods({ offered, describe }: Endpoint): string {
  return [...offered, ...(describe ? ['OPTIONS'] : [])].join(', ');
}

async function answerRequest(
  endpoint: Endpoint,
  allowed: string,
  context: Context,
  request: FastifyRequest,
  reply: FastifyReply,
): Promise<unknown> {
  const links = context.linksFor(request);
  let representation =
    endpoint.representation === 'negotiated' ? DEFAULT_REPRESENTATION : { type: JSON_TYPE, indent: 0 };
  reply.header('allow', allowed);
  try {
    representation = representationFor(endpoint, request);
    const caller = await context.authenticator.authenticate(request, endpoint);
    const call: Call = { services: context.services, caller, path: pathOf(request), links, request };
    const exchange: Exchange = { context, request, reply, links, representation, call };
    const { method } = request;
    admitJob(endpoint, caller);
    admit(
      method === 'GET' || method === 'HEAD' || method === 'OPTIONS' ? endpoint.access.read : endpoint.access.write,
      caller,
    );
    if (method === 'OPTIONS') return endpoint.describe ? reply.send(endpoint.describe()) : reply.code(204).send();
    const wanted = method === 'HEAD' ? 'GET' : method;
    const offered = endpoint.offered.find((one) => one === wanted);
    if (offered === undefined) throw new MethodNotAllowed(method, endpoint.offered);
    if (offered !== 'GET') requireCsrfProof(exchange);
    return await endpoint.handle(exchange, offered);
  } catch (error) {
    return sendError(error, representation, links, request, reply);
  }
}

export function handlerFor(endpoint: Endpoint, context: Context) {
  const allowed = allowedMethods(endpoint);
  return (request: FastifyRequest, reply: FastifyReply) => answerRequest(endpoint, allowed, context, request, reply);
}

/** Sends an answer in the representation that was chosen. */
export function sendAnswer(exchange: Exchange, status: number, answer: Answer): FastifyReply {
  const { representation, links, request, reply } = exchange;
  return sendText(reply, status, representation, render(answer, representation, links, addressOf(request, links)));
}

function sendText(reply: FastifyReply, status: number, representation: Representation, text: string): FastifyReply {
  if (representation.type === HTML) reply.header('content-security-policy', PAGE_SECURITY_POLICY);
  return reply
    .code(status)
    .header('content-type', representation.type)
    .header('vary', 'Accept, Cookie, Origin')
    .serializer(asItIs) // without one, a charset would be added to the media type
    .send(text);
}

function asItIs(text: string): string {
  return text;
}

/** The one place where errors become answers. */
export function sendError(
  error: unknown,
  representation: Representation,
  links: Links,
  request: FastifyRequest,
  reply: FastifyReply,
): FastifyReply {
  const refused = asRequestError(error, request);
  reply.headers(refused.headers);
  return sendText(
    reply,
    refused.status,
    representation,
    render({ kind: 'error', error: refused }, representation, links, addressOf(request, links)),
  );
}

/** What the request accepts, or the default where it accepts nothing that there is. */
function acceptedOrDefault({ headers }: FastifyRequest): Representation {
  try {
    return negotiate(headers.accept, null);
  } catch (error) {
    if (error instanceof RequestError) return DEFAULT_REPRESENTATION;
    throw error;
  }
}

/** Answers what is refused outside of any route, in the negotiated format. */
export function sendRefusal(error: unknown, links: Links, request: FastifyRequest, reply: FastifyReply): FastifyReply {
  return sendError(error, acceptedOrDefault(request), links, request, reply);
}

/** Answers a path that no route knows. */
export function sendUnknownPath(links: Links, request: FastifyRequest, reply: FastifyReply): FastifyReply {
  return sendRefusal(new NotFound(`path as ${request.url.split('?')[0]}`), links, request, reply);
}
