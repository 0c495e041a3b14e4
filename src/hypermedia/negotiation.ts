/** Which representation an answer takes (`wire.md` section 2). */
import { NotAcceptable, NotFound } from './errors.ts';

export type MediaType = 'application/vnd.collection+json' | 'application/json' | 'text/html';

export const COLLECTION_JSON: MediaType = 'application/vnd.collection+json';
export const JSON_TYPE: MediaType = 'application/json';
export const HTML: MediaType = 'text/html';

export interface Representation {
  readonly type: MediaType;
  /** Spaces to indent with; 0: compact. */
  readonly indent: number;
}

export const DEFAULT_REPRESENTATION: Representation = { type: COLLECTION_JSON, indent: 0 };

/** In the order that decides between equals. */
const OFFERED: readonly MediaType[] = [COLLECTION_JSON, JSON_TYPE, HTML];

const FORMATS: ReadonlyMap<string, MediaType> = new Map([
  ['json', JSON_TYPE],
  ['collection+json', COLLECTION_JSON],
  ['api', HTML],
]);

interface MediaRange {
  readonly type: string;
  readonly quality: number;
  readonly indent: number;
}

function parseRange(text: string): MediaRange {
  const [type = '', ...parameters] = text.split(';').map((part) => part.trim().toLowerCase());
  const value = (name: string) =>
    parameters.find((parameter) => parameter.startsWith(`${name}=`))?.slice(name.length + 1);
  const quality = Number(value('q') ?? '1');
  const indent = Number(value('indent') ?? '0');
  return {
    type,
    quality: quality >= 0 && quality <= 1 ? quality : 0,
    indent: Number.isInteger(indent) && indent >= 0 && indent <= 8 ? indent : 0,
  };
}

/** 3: named itself, 2: its main type, 1: anything, 0: not at all. */
function specificity(range: MediaRange, offered: string): number {
  if (range.type === offered) return 3;
  if (range.type === `${offered.split('/')[0]}/*`) return 2;
  return range.type === '*/*' ? 1 : 0;
}

interface Candidate<T extends string> {
  readonly offered: T;
  readonly range: MediaRange;
  readonly specificity: number;
}

/** The range that speaks most specifically of a type decides its quality. */
function candidate<T extends string>(ranges: readonly MediaRange[], offered: T): Candidate<T> | null {
  let best: Candidate<T> | null = null;
  for (const range of ranges) {
    const found = specificity(range, offered);
    if (found > (best?.specificity ?? 0)) best = { offered, range, specificity: found };
  }
  return best !== null && best.range.quality > 0 ? best : null;
}

/**
 * The offered type that an Accept header prefers; between equals the first.
 * @throws {NotAcceptable}
 */
export function accepted<T extends string>(accept: string, offered: readonly T[]): { type: T; indent: number } {
  const ranges = accept.split(',').map(parseRange);
  let best: Candidate<T> | null = null;
  for (const type of offered) {
    const found = candidate(ranges, type);
    if (found === null) continue;
    const better =
      best === null ||
      found.range.quality > best.range.quality ||
      (found.range.quality === best.range.quality && found.specificity > best.specificity);
    if (better) best = found;
  }
  if (best === null) throw new NotAcceptable(offered);
  return { type: best.offered, indent: best.range.indent };
}

const remembered = new Map<string, Representation>();
const REMEMBERED_AT_MOST = 200;

/**
 * @param accept the Accept header, undefined when there is none
 * @param format the `format` parameter or suffix, null when there is none
 * @throws {NotFound} for an unknown format, {NotAcceptable} when nothing fits
 */
export function negotiate(accept: string | undefined, format: string | null): Representation {
  if (format !== null) {
    const type = FORMATS.get(format);
    if (type === undefined) throw new NotFound(`format; known ones are ${[...FORMATS.keys()].join(', ')}`);
    return accept === undefined ? { type, indent: 0 } : accepted(accept, [type]);
  }
  if (accept === undefined || accept === '*/*') return DEFAULT_REPRESENTATION;
  const known = remembered.get(accept);
  if (known !== undefined) return known;
  const representation = accepted(accept, OFFERED);
  if (remembered.size < REMEMBERED_AT_MOST) remembered.set(accept, representation);
  return representation;
}
