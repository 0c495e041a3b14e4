/** Request bodies of every media type, read only after the caller may send one (`wire.md` section 6). */
import type { FastifyRequest } from 'fastify';
import type { IncomingFile, Storage } from '../storage/storage.ts';
import {
  InvalidFields,
  invalid,
  MalformedRequest,
  TooLarge,
  UnsupportedEncoding,
  UnsupportedMediaType,
} from './errors.ts';
import { type Body, type InputFields, isReceivedFile } from './input.ts';

export const BODY_TYPES = [
  'application/vnd.collection+json',
  'application/json',
  'application/x-www-form-urlencoded',
  'multipart/form-data',
] as const;

export type BodyType = (typeof BODY_TYPES)[number];

export interface BodyOptions {
  readonly accepted: readonly BodyType[];
  /** Of everything but files. */
  readonly maxBytes: number;
  readonly maxFileBytes: number | undefined;
  readonly storage: Storage;
}

const EMPTY: Body = { members: {}, isForm: false };

const PARTS_AT_MOST = 10_000;

function tooLarge(maxBytes: number): TooLarge {
  return new TooLarge(`The request body is larger than the ${maxBytes} bytes that are read.`);
}

/** What still arrives is thrown away, so that the client reads the refusal and not the end of the connection. */
function ignoreRest(request: FastifyRequest): void {
  request.raw.unpipe();
  request.raw.resume();
}

async function readBytes(request: FastifyRequest, maxBytes: number): Promise<Buffer> {
  if (Number(request.headers['content-length'] ?? '0') > maxBytes) throw tooLarge(maxBytes);
  const chunks: Buffer[] = [];
  let sizeBytes = 0;
  try {
    for await (const chunk of request.raw.iterator({ destroyOnReturn: false })) {
      sizeBytes += chunk.length;
      if (sizeBytes > maxBytes) throw tooLarge(maxBytes);
      chunks.push(chunk);
    }
  } catch (error) {
    if (error instanceof TooLarge) ignoreRest(request);
    else if (request.raw.destroyed) throw new MalformedRequest('The request body ended before it was complete.');
    throw error;
  }
  return Buffer.concat(chunks);
}

function parseJson(bytes: Buffer): unknown {
  try {
    return JSON.parse(bytes.toString('utf8'));
  } catch (error) {
    throw new MalformedRequest(
      `The request body is not JSON: ${error instanceof Error ? error.message : 'it cannot be read'}.`,
    );
  }
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function readJson(bytes: Buffer): Body {
  const value = parseJson(bytes);
  if (!isObject(value))
    throw new InvalidFields({ non_field_errors: ['Invalid data. Send a JSON object with a member for each field.'] });
  return { members: value, isForm: false };
}

const TEMPLATE_SHAPE = 'Send {"template": {"data": [{"name": "…", "value": …}]}}.';

/** Media type: Collection+JSON 1.0 by Mike Amundsen, section "template". Of a repeated name the last value counts. */
function readTemplate(bytes: Buffer): Body {
  const value = parseJson(bytes);
  const template = isObject(value) ? value.template : undefined;
  const data = isObject(template) ? template.data : undefined;
  if (!Array.isArray(data))
    throw new MalformedRequest(`The template object or its data list is missing. ${TEMPLATE_SHAPE}`);
  const members = data.map((element): [string, unknown] => {
    if (!isObject(element) || typeof element.name !== 'string' || !('value' in element)) {
      throw new MalformedRequest(`An element of the template's data lacks name or value. ${TEMPLATE_SHAPE}`);
    }
    return [element.name, element.value];
  });
  return { members: Object.fromEntries(members), isForm: false };
}

function readForm(bytes: Buffer): Body {
  return { members: Object.fromEntries(new URLSearchParams(bytes.toString('utf8'))), isForm: true };
}

/** Files go to storage as they arrive; only parts that the input declares as files are kept. */
async function readMultipart(
  request: FastifyRequest,
  fields: InputFields,
  options: BodyOptions,
  received: IncomingFile[],
): Promise<Body> {
  if (!/;\s*boundary=/i.test(request.headers['content-type'] ?? '')) {
    throw new MalformedRequest(
      'The multipart body has no boundary. Content-Type must name it: multipart/form-data; boundary=…',
    );
  }
  const members: Record<string, unknown> = {};
  let fieldBytes = 0;
  const parts = request.parts({
    limits: { fieldSize: options.maxBytes, parts: PARTS_AT_MOST, fileSize: Number.POSITIVE_INFINITY },
  });
  try {
    for await (const part of parts) {
      const { fieldname: name } = part;
      if (part.type === 'field') {
        fieldBytes += name.length + (typeof part.value === 'string' ? part.value.length : 0);
        if (part.valueTruncated || fieldBytes > options.maxBytes) throw tooLarge(options.maxBytes);
        members[name] = part.value;
      } else if (fields[name]?.type !== 'file' || !part.filename) {
        part.file.resume();
        members[name] = '';
      } else {
        if (isReceivedFile(members[name])) throw invalid(name, 'This file was sent twice. Send it once.');
        const limit = options.maxFileBytes;
        const content = await options.storage.receive(part.file, limit === undefined ? {} : { maxBytes: limit });
        received.push(content);
        members[name] = { filename: part.filename, content };
      }
    }
  } catch (error) {
    ignoreRest(request);
    if (!isParserError(error)) throw error;
    const isCutOff = 'code' in error && error.code === 'FST_MP_PREMATURE_CLOSE';
    // a body of which nothing can be read counts as empty, as clients of the reference know it
    if (isCutOff || Object.keys(members).length > 0 || received.length > 0)
      throw new MalformedRequest(`The multipart body cannot be read: ${error.message}.`);
  }
  return { members, isForm: true };
}

/** What busboy and its Fastify plugin raise for a body that is not what it says. */
function isParserError(error: unknown): error is Error {
  return (
    error instanceof Error &&
    (/multipart|boundary|malformed|part header/i.test(error.message) ||
      ('code' in error && /^FST_/.test(String(error.code))))
  );
}

function mediaType(request: FastifyRequest): string {
  return (request.headers['content-type'] ?? '').split(';')[0]?.trim().toLowerCase() ?? '';
}

function hasBody(request: FastifyRequest): boolean {
  return request.headers['transfer-encoding'] !== undefined || Number(request.headers['content-length'] ?? '0') > 0;
}

/**
 * Reads the body; what it brings as files is added to `received`, also when reading fails half-way.
 * @throws {UnsupportedMediaType} {UnsupportedEncoding} {MalformedRequest} {InvalidFields} {TooLarge}
 */
export async function readBody(
  request: FastifyRequest,
  fields: InputFields,
  options: BodyOptions,
  received: IncomingFile[],
): Promise<Body> {
  const type = mediaType(request);
  const encoding = request.headers['content-encoding']?.trim().toLowerCase() ?? '';
  if (hasBody(request) && encoding !== '' && encoding !== 'identity') throw new UnsupportedEncoding(encoding);
  const known = options.accepted.find((accepted) => accepted === type);
  if (known === undefined) {
    if (!hasBody(request)) return EMPTY;
    throw new UnsupportedMediaType(type, options.accepted);
  }
  if (known === 'multipart/form-data') return readMultipart(request, fields, options, received);
  const bytes = await readBytes(request, options.maxBytes);
  if (bytes.length === 0) return EMPTY;
  if (known === 'application/x-www-form-urlencoded') return readForm(bytes);
  return known === 'application/json' ? readJson(bytes) : readTemplate(bytes);
}
