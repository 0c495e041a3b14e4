/** Answers as text: lists, items and errors in plain JSON, Collection+JSON and HTML. */
import { renderPage } from './answer-page.ts';
import type { RequestError } from './errors.ts';
import type { Links } from './links.ts';
import { HTML, JSON_TYPE, type Representation } from './negotiation.ts';
import type { PageLinks } from './paging.ts';
import type { Shape } from './shape.ts';
import type { Row } from './statement.ts';

export interface NamedLink {
  readonly rel: string;
  readonly href: string;
}

export interface SearchForm {
  readonly href: string;
  readonly names: readonly string[];
}

export interface ListAnswer {
  readonly kind: 'list';
  readonly shape: Shape;
  readonly rows: readonly Row[];
  readonly total: number;
  readonly pages: PageLinks;
  readonly links: readonly NamedLink[];
  readonly search: SearchForm | null;
  readonly template: readonly string[] | null;
}

export interface ItemAnswer {
  readonly kind: 'item';
  readonly shape: Shape;
  readonly row: Row;
  readonly template: readonly string[] | null;
}

export interface ErrorAnswer {
  readonly kind: 'error';
  readonly error: RequestError;
}

export type Answer = ListAnswer | ItemAnswer | ErrorAnswer;

function emptyFields(names: readonly string[]): string {
  return `[${names.map((name) => `{"name":${JSON.stringify(name)},"value":""}`).join(',')}]`;
}

function templateMember(template: readonly string[] | null): string {
  return template === null ? '' : `,"template":{"data":${emptyFields(template)}}`;
}

function queriesMember(search: SearchForm | null): string {
  return search === null
    ? ''
    : `,"queries":[{"href":${JSON.stringify(search.href)},"rel":"search","data":${emptyFields(search.names)}}]`;
}

function linkObjects(links: readonly NamedLink[]): string {
  return links.map((link) => `{"rel":${JSON.stringify(link.rel)},"href":${JSON.stringify(link.href)}}`).join(',');
}

function toJson(answer: Answer, links: Links): string {
  if (answer.kind === 'error') return JSON.stringify(answer.error.body());
  if (answer.kind === 'item') return `{${answer.shape.members(answer.row, links)}${templateMember(answer.template)}}`;
  const results = answer.rows.map((row) => answer.shape.json(row, links)).join(',');
  const relations = answer.links.map((link) => `${JSON.stringify(link.rel)}:${JSON.stringify(link.href)}`).join(',');
  const linkMember = answer.links.length > 0 ? `,"collection_links":{${relations}}` : '';
  const { next, previous } = answer.pages;
  const head = `"count":${answer.total},"next":${JSON.stringify(next)},"previous":${JSON.stringify(previous)}`;
  return `{${head},"results":[${results}]${queriesMember(answer.search)}${linkMember}${templateMember(answer.template)}}`;
}

/** Inside of Collection+JSON the JSON text of field errors is ASCII only, with a space after `:` and `,`. */
export function errorMessage(error: RequestError): string {
  const body = error.body();
  if ('detail' in body && typeof body.detail === 'string') return body.detail;
  const spaced = JSON.stringify(body, null, 1)
    .replace(/\n\s*/g, ' ')
    .replace(/([[{]) | ([\]}])/g, '$1$2');
  return spaced.replace(
    /[\u0080-\uffff]/g,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );
}

/** Source of the format: Collection+JSON 1.0, http://amundsen.com/media-types/collection/format/ */
function toCollection(answer: Answer, links: Links, address: string): string {
  const head = `"version":"1.0","href":${JSON.stringify(address)}`;
  if (answer.kind === 'error')
    return `{"collection":{${head},"error":{"message":${JSON.stringify(errorMessage(answer.error))}}}}`;
  if (answer.kind === 'item') {
    const item = answer.shape.collectionItem(answer.row, links);
    return `{"collection":{${head},"items":[${item}],"links":[]${templateMember(answer.template)}}}`;
  }
  const items = answer.rows.map((row) => answer.shape.collectionItem(row, links)).join(',');
  const { next, previous } = answer.pages;
  const all = [
    ...answer.links,
    ...(next ? [{ rel: 'next', href: next }] : []),
    ...(previous ? [{ rel: 'previous', href: previous }] : []),
  ];
  const rest = `${queriesMember(answer.search)}${templateMember(answer.template)},"total":${answer.total}`;
  return `{"collection":{${head},"items":[${items}],"links":[${linkObjects(all)}]${rest}}}`;
}

function indented(text: string, spaces: number): string {
  return spaces === 0 ? text : JSON.stringify(JSON.parse(text), null, spaces);
}

/** @param address of the request, with its query */
export function render(answer: Answer, representation: Representation, links: Links, address: string): string {
  if (representation.type === HTML) {
    const status = answer.kind === 'error' ? answer.error.status : 200;
    return renderPage({ address, status, content: JSON.parse(toJson(answer, links)) });
  }
  const text = representation.type === JSON_TYPE ? toJson(answer, links) : toCollection(answer, links, address);
  return indented(text, representation.indent);
}
