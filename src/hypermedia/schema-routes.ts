/** `/schema/`: the API description for programs, and two viewers for people (`wire.md` section 12). */
import { readFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { type Exchange, queryOf } from './dispatch.ts';
import { NotFound, RequestError } from './errors.ts';
import { escapeHtml, PAGE_SECURITY_POLICY } from './html.ts';
import { accepted } from './negotiation.ts';
import type { Content, OpenApiDocument, Schema } from './openapi-types.ts';
import { renderReference } from './reference-page.ts';
import { PUBLIC, type SpecialRoute, special } from './routes.ts';

/** In the order that decides between equals. */
const FORMS = [
  'application/vnd.oai.openapi',
  'application/yaml',
  'application/vnd.oai.openapi+json',
  'application/json',
] as const;

type Form = (typeof FORMS)[number];

const FORMATS: ReadonlyMap<string, Form> = new Map([
  ['yaml', 'application/vnd.oai.openapi'],
  ['json', 'application/vnd.oai.openapi+json'],
]);

function isJson(form: Form): boolean {
  return form.endsWith('json');
}

/** @throws {NotFound} for an unknown format, {NotAcceptable} when nothing fits */
function chooseForm({ request }: Exchange): Form {
  const format = queryOf(request).getAll('format').at(-1);
  const { accept } = request.headers;
  if (format === undefined) return accepted(accept ?? '*/*', FORMS).type;
  const form = FORMATS.get(format);
  if (form === undefined) throw new NotFound(`format; known ones are ${[...FORMATS.keys()].join(', ')}`);
  return form;
}

/** Parts that repeat are written out, because readers of OpenAPI need not know YAML's anchors. */
async function toYaml(value: unknown): Promise<string> {
  const { stringify } = await import('yaml');
  return stringify(value, { aliasDuplicateObjects: false, lineWidth: 0 });
}

/** Indented as the reference writes it. */
function toJson(value: unknown): string {
  return JSON.stringify(value, null, 4);
}

/** What is made from the routes at the first request for it, and kept. */
class Description {
  readonly #describe: () => OpenApiDocument;
  #document: OpenApiDocument | null = null;
  readonly #texts = new Map<string, Buffer>();

  constructor(describe: () => OpenApiDocument) {
    this.#describe = describe;
  }

  get document(): OpenApiDocument {
    this.#document ??= this.#describe();
    return this.#document;
  }

  /** @param kind of text, to find it again */
  async text(kind: 'json' | 'yaml' | 'page'): Promise<Buffer> {
    const known = this.#texts.get(kind);
    if (known !== undefined) return known;
    const write = { json: toJson, yaml: toYaml, page: renderReference }[kind];
    const made = Buffer.from(await write(this.document));
    this.#texts.set(kind, made);
    return made;
  }
}

const DESCRIBED: Content = { types: FORMS, schema: { type: 'object', additionalProperties: {} } };

const QUERY: Readonly<Record<string, Schema>> = {
  format: { type: 'string', enum: [...FORMATS.keys()].sort() },
  lang: { type: 'string', description: 'Has no effect: the description is in English.' },
};

function schemaRoute(description: Description): SpecialRoute {
  const show = async (exchange: Exchange): Promise<unknown> => {
    const { reply } = exchange;
    reply.header('vary', 'Accept, Cookie, Origin');
    try {
      const form = chooseForm(exchange);
      const kind = isJson(form) ? 'json' : 'yaml';
      const { title } = description.document.info;
      reply.header('content-disposition', `inline; filename="${title}.${kind}"`);
      return reply.header('content-type', form).send(await description.text(kind));
    } catch (error) {
      if (!(error instanceof RequestError)) throw error;
      return reply
        .code(error.status)
        .header('content-type', FORMS[0])
        .send(Buffer.from(await toYaml(error.body())));
    }
  };
  return special({
    path: 'schema/',
    fromRoot: true,
    access: PUBLIC,
    representation: 'its own',
    describe: () => ({
      name: 'Schema',
      description: 'The OpenAPI 3.0.3 description of the API.',
      renders: FORMS,
      parses: [],
    }),
    methods: { GET: { summary: 'This description', query: QUERY, answer: DESCRIBED, handle: show } },
  });
}

/** A page or file that the description leaves out. */
function viewer(path: string, summary: string, handle: (exchange: Exchange) => Promise<unknown>): SpecialRoute {
  return special({
    path: `schema/${path}`,
    fromRoot: true,
    access: PUBLIC,
    representation: 'its own',
    undocumented: true,
    methods: { GET: { summary, handle } },
  });
}

const HTML_TYPE = 'text/html; charset=utf-8';
const SCRIPT_TYPE = 'text/javascript; charset=utf-8';

/** Swagger UI sets styles on elements, and its icons are data addresses; all scripts come from here. */
const SWAGGER_SECURITY_POLICY =
  "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; " +
  "frame-ancestors 'none'; base-uri 'none'; form-action 'none'";

/** A session's caller may try writing requests: they carry the proof that they come from this page. */
const SWAGGER_START = `const csrf = () => /(?:^|; )csrftoken=([^;]*)/.exec(document.cookie)?.[1] ?? '';
SwaggerUIBundle({
  url: '/schema/?format=json',
  dom_id: '#swagger-ui',
  deepLinking: true,
  docExpansion: 'none',
  filter: true,
  tagsSorter: 'alpha',
  validatorUrl: null,
  requestInterceptor: (request) => {
    if (new URL(request.url, location.href).origin === location.origin) request.headers['X-CSRFToken'] = csrf();
    return request;
  },
});
`;

function swaggerPage(title: string): string {
  return `<!doctype html><html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>${escapeHtml(title)} API</title><link rel="stylesheet" href="/schema/swagger-ui/swagger-ui.css">
<link rel="icon" href="/schema/swagger-ui/favicon-32x32.png"></head><body><div id="swagger-ui"></div>
<script src="/schema/swagger-ui/swagger-ui-bundle.js"></script><script src="/schema/swagger-ui/start.js"></script></body></html>`;
}

/** Files of the npm package `swagger-ui-dist` that the page needs. */
const SWAGGER_FILES: readonly (readonly [name: string, type: string])[] = [
  ['swagger-ui.css', 'text/css; charset=utf-8'],
  ['swagger-ui-bundle.js', SCRIPT_TYPE],
  ['favicon-32x32.png', 'image/png'],
];

const CACHED = 'public, max-age=3600';

function swaggerFile(name: string, type: string): SpecialRoute {
  return viewer(`swagger-ui/${name}`, 'A file of Swagger UI', async ({ reply }) => {
    const content = await readFile(fileURLToPath(import.meta.resolve(`swagger-ui-dist/${name}`)));
    return reply.headers({ 'content-type': type, 'cache-control': CACHED }).send(content);
  });
}

export interface SchemaRouteOptions {
  /** Makes the description; called once, at the first request for it. */
  readonly describe: () => OpenApiDocument;
  readonly setCsrfCookie: (exchange: Exchange) => void;
}

export function schemaRoutes({ describe, setCsrfCookie }: SchemaRouteOptions): readonly SpecialRoute[] {
  const description = new Description(describe);
  return [
    schemaRoute(description),
    viewer('swagger-ui/', 'The description in Swagger UI', async (exchange) => {
      setCsrfCookie(exchange);
      const headers = { 'content-type': HTML_TYPE, 'content-security-policy': SWAGGER_SECURITY_POLICY };
      return exchange.reply.headers(headers).send(swaggerPage(description.document.info.title));
    }),
    viewer('swagger-ui/start.js', 'Starts Swagger UI', async ({ reply }) =>
      reply.headers({ 'content-type': SCRIPT_TYPE, 'cache-control': CACHED }).send(SWAGGER_START),
    ),
    ...SWAGGER_FILES.map(([name, type]) => swaggerFile(name, type)),
    viewer('redoc/', 'The description as one page', async ({ reply }) =>
      reply
        .headers({ 'content-type': HTML_TYPE, 'content-security-policy': PAGE_SECURITY_POLICY })
        .send(await description.text('page')),
    ),
  ];
}
