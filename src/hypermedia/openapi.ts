/** The OpenAPI 3.0.3 description of the declared routes. */
import { BODY_TYPES, type BodyType } from './body.ts';
import type { Filter } from './filters.ts';
import { documentedPath, operationId, summaryOf, tagOf, type Verb, verbOf } from './openapi-names.ts';
import {
  componentSchemas,
  type Enumerations,
  paginatedName,
  pathSchemas,
  reference,
  typeSchema,
} from './openapi-schemas.ts';
import type {
  Answer,
  AnswerReference,
  Content,
  MediaTypes,
  OpenApiDocument,
  Operation,
  Parameter,
  PathItem,
  Schema,
  SecurityScheme,
} from './openapi-types.ts';
import {
  type Audience,
  type Change,
  type Creation,
  type ItemRoute,
  type ListRoute,
  type Method,
  offeredMethods,
  type Route,
  type SpecialMethod,
  type SpecialRoute,
  searchPath,
} from './routes.ts';

const INTRODUCTION = `Lists are paged with \`limit\` and \`offset\`. Every resource is also there as \`application/vnd.collection+json\`,
which is what an answer without an \`Accept\` header is written in, and which bodies may be written in.`;

const SECURITY_SCHEMES: Readonly<Record<string, SecurityScheme>> = {
  DownloadTokenInQueryString: { type: 'apiKey', in: 'query', name: 'download_token' },
  basicAuth: { type: 'http', scheme: 'basic' },
  cookieAuth: { type: 'apiKey', in: 'cookie', name: 'sessionid' },
  tokenAuth: {
    type: 'apiKey',
    in: 'header',
    name: 'Authorization',
    description: 'A token of `POST /api/v1/auth-token/`, alone or after the word `Token` or `Bearer`.',
  },
};

const FIELD_ERRORS: Schema = {
  type: 'object',
  description:
    'Texts by field; `non_field_errors` for what concerns the whole; `detail` for a body that cannot be read.',
  additionalProperties: {},
};
const PROBLEM: Schema = { type: 'object', properties: { detail: { type: 'string' } } };

const REFUSALS: Readonly<Record<string, Answer>> = {
  BadRequest: { description: 'Fields that are wrong.', content: { 'application/json': { schema: FIELD_ERRORS } } },
  NotAuthenticated: {
    description: 'Credentials are missing or wrong.',
    content: { 'application/json': { schema: PROBLEM } },
  },
  Forbidden: { description: 'The caller may not do this.', content: { 'application/json': { schema: PROBLEM } } },
  NotFound: { description: 'There is no such object.', content: { 'application/json': { schema: PROBLEM } } },
};

type Responses = Operation['responses'];

function refusal(name: keyof typeof REFUSALS): AnswerReference {
  return { $ref: `#/components/responses/${name}` };
}

/** An operation before the facts that all share are added to it. */
interface Sketch {
  readonly route: Route;
  /** As declared: below the API, or below the root. */
  readonly path: string;
  readonly method: Method;
  readonly verb: Verb;
  readonly id: string | undefined;
  readonly summary: string;
  readonly audience: Audience;
  readonly query: readonly Parameter[];
  readonly body: Operation['requestBody'] | undefined;
  readonly answers: Responses;
}

function mediaTypes(types: readonly string[], schema: Schema): MediaTypes {
  return Object.fromEntries(types.map((type) => [type, { schema }]));
}

function jsonOf(component: string): MediaTypes {
  return mediaTypes(['application/json'], reference(component));
}

const DESCRIBED_BODIES: readonly BodyType[] = BODY_TYPES.filter((type) => type !== 'application/vnd.collection+json');

function requestBody(action: Creation | Change, component: string): Operation['requestBody'] {
  const required = Object.values(action.fields).some((field) => field.required);
  return {
    content: mediaTypes(action.bodies ?? DESCRIBED_BODIES, reference(component)),
    ...(required && { required }),
  };
}

function queryParameter(name: string, schema: Schema): Parameter {
  return { in: 'query', name, required: false, schema };
}

const PAGING = [queryParameter('limit', { type: 'integer' }), queryParameter('offset', { type: 'integer' })];

/** The reference describes the ids of related objects as texts, and generated clients pass them so. */
function filterSchema({ name, type, choices }: Filter): Schema {
  if (choices) return { type: 'string', enum: [...choices].sort() };
  return typeSchema(type === 'integer' && /(?<!^m(?:in|ax))_id$/.test(name) ? 'string' : type);
}

function searchParameters(route: ListRoute): readonly Parameter[] {
  const { filters = [], sort } = route.search ?? {};
  const sorting = sort ? [queryParameter(sort.parameter, { type: 'string', enum: Object.keys(sort.orders) })] : [];
  const parameters = filters.map((filter) => queryParameter(filter.name, filterSchema(filter)));
  return [...PAGING, ...parameters, ...sorting].sort((one, other) => (one.name < other.name ? -1 : 1));
}

function listSketches(route: ListRoute): readonly Sketch[] {
  const { of, path, access, operations, create, search } = route;
  const shared = { route, path, body: undefined };
  const page = { 200: { description: 'A page of the list.', content: jsonOf(paginatedName(of.component)) } };
  const summary = (verb: Verb): string => summaryOf(verb, of.name, route.within?.resource.name);
  const sketches: Sketch[] = [
    {
      ...shared,
      method: 'GET',
      verb: 'list',
      id: operations?.GET,
      summary: summary('list'),
      audience: access.read,
      query: PAGING,
      answers: page,
    },
  ];
  if (create) {
    const answers = { 201: { description: 'It has been created.', content: jsonOf(of.component) } };
    const body = requestBody(create, of.component);
    sketches.push({
      ...shared,
      method: 'POST',
      verb: 'create',
      id: operations?.POST,
      summary: summary('create'),
      audience: access.write,
      query: [],
      body,
      answers,
    });
  }
  if (search) {
    const query = searchParameters(route);
    const audience = search.read ?? access.read;
    sketches.push({
      ...shared,
      path: searchPath(route),
      method: 'GET',
      verb: 'search',
      id: search.operation,
      summary: summary('search'),
      audience,
      query,
      answers: page,
    });
  }
  return sketches;
}

/** Removal in the background answers 202; the 204 beside it is what generated clients know. */
function removalAnswers(route: ItemRoute): Responses {
  const gone: Answer = { description: 'It is gone.' };
  if (!route.remove?.inBackground) return { 204: gone };
  return { 202: { description: 'It is being deleted.', content: jsonOf(route.of.component) }, 204: gone };
}

function itemSketches(route: ItemRoute): readonly Sketch[] {
  const { of, path, access, operations, change } = route;
  const shown = { 200: { description: 'The object.', content: jsonOf(of.component) } };
  return offeredMethods(route).map((method) => {
    const verb = verbOf(route, method);
    return {
      route,
      path,
      method,
      verb,
      id: operations?.[method],
      summary: summaryOf(verb, of.name, undefined),
      audience: method === 'GET' ? access.read : access.write,
      query: [],
      body: method === 'PUT' && change ? requestBody(change, of.component) : undefined,
      answers: method === 'DELETE' ? removalAnswers(route) : shown,
    };
  });
}

function contentOf({ types, schema, component }: Content): MediaTypes {
  return mediaTypes(types, component === undefined ? schema : reference(component));
}

const SOME_JSON: Content = { types: ['application/json'], schema: { type: 'object', additionalProperties: {} } };

/** What stands behind a free end of a path is a file. */
const FILE: Content = { types: ['*/*'], schema: { type: 'string', format: 'binary' } };

function specialAnswers(route: SpecialRoute, method: Method, { answer }: SpecialMethod): Responses {
  if (answer === 'nothing' || (answer === undefined && method === 'DELETE')) return { 204: { description: 'Done.' } };
  const otherwise = route.path.endsWith('*') ? FILE : SOME_JSON;
  return { [answer?.status ?? 200]: { description: 'The answer.', content: contentOf(answer ?? otherwise) } };
}

function specialSketches(route: SpecialRoute): readonly Sketch[] {
  if (route.undocumented) return [];
  return offeredMethods(route).flatMap((method) => {
    const declared = route.methods[method];
    if (!declared) return [];
    const { operation, summary, query = {}, body } = declared;
    return {
      route,
      path: route.path,
      method,
      verb: verbOf(route, method),
      id: operation,
      summary,
      audience: method === 'GET' ? route.access.read : route.access.write,
      query: Object.entries(query).map(([name, schema]) => queryParameter(name, schema)),
      body: body && { content: contentOf(body), required: true },
      answers: specialAnswers(route, method, declared),
    };
  });
}

function sketchesOf(route: Route): readonly Sketch[] {
  if (route.kind === 'list') return listSketches(route);
  return route.kind === 'item' ? itemSketches(route) : specialSketches(route);
}

function securityOf({ route, audience }: Sketch): Operation['security'] {
  const downloads = route.kind === 'special' && route.downloadToken ? ['DownloadTokenInQueryString'] : [];
  const schemes = [...downloads, 'tokenAuth', 'basicAuth', 'cookieAuth'].map((name) => ({ [name]: [] }));
  return audience === 'anyone' ? [...schemes, {}] : schemes;
}

function refusalsOf({ path, audience, body, query, method }: Sketch): Responses {
  const filtered = query.some(({ name }) => name !== 'limit' && name !== 'offset');
  return {
    ...((body || filtered) && { 400: refusal('BadRequest') }),
    401: refusal('NotAuthenticated'),
    ...((audience !== 'anyone' || method !== 'GET') && { 403: refusal('Forbidden') }),
    ...(path.includes('{') && { 404: refusal('NotFound') }),
  };
}

function operationOf(sketch: Sketch): Operation {
  const { route, path, verb, id, summary, query, body, answers } = sketch;
  const inPath = pathSchemas(path).map(([name, schema]): Parameter => ({ in: 'path', name, required: true, schema }));
  return {
    operationId: id ?? operationId(route, path, verb),
    summary,
    tags: [tagOf(route, path)],
    parameters: [...inPath, ...query],
    ...(body && { requestBody: body }),
    security: securityOf(sketch),
    responses: { ...answers, ...refusalsOf(sketch) },
  };
}

export interface DescriptionOptions {
  readonly title: string;
  /** Under which the administration is described; it may answer under others too. */
  readonly adminPrefix: string;
  readonly enumerations: Enumerations;
}

/** @throws {Error} when two operations would have the same id: one of them must declare another */
export function describeApi(
  routes: readonly Route[],
  { title, adminPrefix, enumerations }: DescriptionOptions,
): OpenApiDocument {
  const paths = new Map<string, PathItem>();
  const ids = new Map<string, string>();
  for (const sketch of routes.flatMap(sketchesOf)) {
    const path = documentedPath(sketch.route, sketch.path, adminPrefix);
    const operation = operationOf(sketch);
    const taken = ids.get(operation.operationId);
    if (taken !== undefined)
      throw new Error(
        `The operation id ${operation.operationId} stands for ${taken} and for ${sketch.method} ${path}.`,
      );
    ids.set(operation.operationId, `${sketch.method} ${path}`);
    paths.set(path, { ...paths.get(path), [sketch.method.toLowerCase()]: operation });
  }
  return {
    openapi: '3.0.3',
    info: { title, version: '1', description: INTRODUCTION },
    paths: Object.fromEntries([...paths].sort(([one], [other]) => (one < other ? -1 : 1))),
    components: {
      schemas: componentSchemas(routes, enumerations),
      responses: REFUSALS,
      securitySchemes: SECURITY_SCHEMES,
    },
  };
}
