/** Puts the HTTP server together from its parts. */
import { randomUUID } from 'node:crypto';
import cookie from '@fastify/cookie';
import cors, { type FastifyCorsOptions } from '@fastify/cors';
import multipart from '@fastify/multipart';
import fastify, { type FastifyBaseLogger, type FastifyInstance, type FastifyRequest, LogController } from 'fastify';
import { createAuthenticator, PasswordCheck } from './accounts/authentication.ts';
import { loginRoutes } from './accounts/login.ts';
import { accountRoutes } from './accounts/routes.ts';
import { SESSION_COOKIE, setCsrfCookie } from './accounts/sessions.ts';
import { ignoreUnknownExpectations, refuseBrokenRequest } from './broken-requests.ts';
import type { Config } from './config.ts';
import { ENUMERATIONS } from './enumerations.ts';
import { feedFileRoutes } from './feeds/file-routes.ts';
import { feedRoutes } from './feeds/routes.ts';
import { fileRoutes } from './files/routes.ts';
import { addHealthRoutes, type ReadinessCheck } from './health.ts';
import { type Context, type Exchange, sendRefusal, sendUnknownPath } from './hypermedia/dispatch.ts';
import { MalformedRequest } from './hypermedia/errors.ts';
import { Links } from './hypermedia/links.ts';
import { acceptEveryMethod, adminPrefixes, mountRoutes, suffixRewriter } from './hypermedia/mount.ts';
import { describeApi } from './hypermedia/openapi.ts';
import type { OpenApiDocument } from './hypermedia/openapi-types.ts';
import { openToJobs, type Route } from './hypermedia/routes.ts';
import { schemaRoutes } from './hypermedia/schema-routes.ts';
import { deleteInstancesOfPlugin } from './instances/deletion.ts';
import { instanceRoutes } from './instances/routes.ts';
import { catalogueRoutes } from './plugins/routes.ts';
import { SECURITY_HEADERS } from './security-headers.ts';
import type { Services } from './services.ts';

/** Every route of the API, subject by subject. */
export function routesOf(config: Config, passwords: PasswordCheck): readonly Route[] {
  const routes: readonly Route[] = [
    ...accountRoutes(config),
    ...openToJobs([...feedRoutes, ...feedFileRoutes, ...instanceRoutes]),
    ...catalogueRoutes(deleteInstancesOfPlugin),
    ...fileRoutes,
    ...loginRoutes(passwords, adminPrefixes(config.adminPrefix)),
    ...schemaRoutes({ describe: () => describe(routes, config), setCsrfCookie: giveCsrfCookie }),
  ];
  return routes;
}

function describe(routes: readonly Route[], { adminPrefix }: Config): OpenApiDocument {
  return describeApi(routes, { title: 'Hypercube', adminPrefix, enumerations: ENUMERATIONS });
}

function giveCsrfCookie({ call, request, reply }: Exchange): void {
  setCsrfCookie(call.services.secrets, request.cookies[SESSION_COOKIE] ?? '', request, reply);
}

/** A connection on which nothing moves for so long is given up, with whatever was being uploaded. */
const IDLE_MILLISECONDS = 300_000;

const HOST = /^(?:[a-z0-9._-]+|\[[0-9a-f:.]+\])(?::\d{1,5})?$/i;

/** Links carry the scheme and host that the caller used, or the configured base address. */
function linkFactory({ config }: Services): (request: FastifyRequest) => Links {
  const known = new Map<string, Links>();
  return (request) => {
    const origin = config.baseUrl ?? `${request.protocol}://${request.host}`;
    const links = known.get(origin) ?? new Links(origin, config.adminPrefix);
    if (known.size < 100) known.set(origin, links);
    return links;
  };
}

/** An allowed name that begins with a dot stands for all its subdomains too. */
function isAllowedHost(host: string, allowed: '*' | readonly string[]): boolean {
  if (!HOST.test(host)) return false;
  const name = host.replace(/:\d+$/, '').toLowerCase();
  return (
    allowed === '*' ||
    allowed.some((one) => name === one.replace(/^\./, '') || (one.startsWith('.') && name.endsWith(one)))
  );
}

/** Probes come from the machine itself or its orchestrator, under whatever name they know. */
function isProbe({ url }: FastifyRequest): boolean {
  return url === '/healthz' || url === '/readyz';
}

function isPreflight({ method, headers }: FastifyRequest): boolean {
  return method === 'OPTIONS' && headers.origin !== undefined && headers['access-control-request-method'] !== undefined;
}

/** As the reference answers other origins (`wire.md` section 13): without credentials, `Allow` readable. */
function corsOptionsOf(origins: '*' | readonly string[]): FastifyCorsOptions {
  return {
    origin: origins === '*' ? '*' : [...origins],
    methods: ['DELETE', 'GET', 'OPTIONS', 'PATCH', 'POST', 'PUT'],
    allowedHeaders: ['accept', 'authorization', 'content-type', 'user-agent', 'x-csrftoken', 'x-requested-with'],
    exposedHeaders: ['Allow'],
    maxAge: 86400,
    optionsSuccessStatus: 200,
    strictPreflight: false,
  };
}

/**
 * Builds the server; the caller makes it listen.
 * @param checks what `/readyz` asks besides the database, such as the job worker of this process
 */
export async function buildServer(
  services: Services,
  checks: readonly ReadinessCheck[] = [],
): Promise<FastifyInstance> {
  const { config, log } = services;
  const logger: FastifyBaseLogger = log;
  const passwords = new PasswordCheck(services);
  const routes = routesOf(config, passwords);
  const corsOptions = corsOptionsOf(config.corsOrigins);
  const rewrite = suffixRewriter(routes);
  const linksFor = linkFactory(services);
  const app = fastify({
    loggerInstance: logger,
    // requests are logged once, when they have been answered
    logController: new LogController({ disableRequestLogging: true }),
    genReqId: () => randomUUID(),
    requestIdHeader: false,
    trustProxy: config.trustedProxies.length > 0 ? [...config.trustedProxies] : false,
    rewriteUrl: (request) => rewrite(request.url ?? '/'),
    routerOptions: { ignoreTrailingSlash: true, maxParamLength: 4096 },
    forceCloseConnections: 'idle',
    connectionTimeout: IDLE_MILLISECONDS,
    // a missing Host is refused below, with all headers
    http: { requireHostHeader: false },
    clientErrorHandler: refuseBrokenRequest,
    frameworkErrors: (error, request, reply) =>
      sendRefusal(error, linksFor(request), request, reply.headers(SECURITY_HEADERS)),
  });
  acceptEveryMethod(app);
  ignoreUnknownExpectations(app.server);
  const context: Context = {
    services,
    authenticator: createAuthenticator(services, passwords),
    linksFor,
  };

  app.addHook('onRequest', (request, reply, done) => {
    reply.headers(SECURITY_HEADERS);
    reply.header('x-request-id', request.id);
    if (isProbe(request) || isAllowedHost(request.host, config.allowedHosts)) return done();
    const links = new Links(config.baseUrl ?? '', config.adminPrefix);
    const problem = new MalformedRequest(
      'The Host header names a host that this server does not answer for. HYPERCUBE_ALLOWED_HOSTS lists those that it does.',
    );
    sendRefusal(problem, links, request, reply);
  });
  app.addHook('onResponse', (request, reply, done) => {
    const line = {
      method: request.method,
      path: request.url.split('?', 1)[0],
      status: reply.statusCode,
      milliseconds: Math.round(reply.elapsedTime * 10) / 10,
    };
    request.log.info(line, 'request');
    done();
  });
  app.setErrorHandler((error, request, reply) => sendRefusal(error, linksFor(request), request, reply));
  app.setNotFoundHandler((request, reply) => sendUnknownPath(linksFor(request), request, reply));

  await app.register(
    cors,
    () => (request: FastifyRequest, done: (error: null, options: FastifyCorsOptions) => void) => {
      done(null, { ...corsOptions, preflight: isPreflight(request) });
    },
  );
  await app.register(cookie);
  // Bodies are read by the routes, after the checks that come first: parsers only pass the stream on.
  app.removeAllContentTypeParsers();
  await app.register(multipart);
  app.addContentTypeParser('*', (_request, _payload, done) => done(null));

  addHealthRoutes(app, services, checks);
  mountRoutes(app, routes, context);
  return app;
}
