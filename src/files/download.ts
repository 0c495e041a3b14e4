/** Sending a stored file: its headers, one byte range, validators, and an end to the reading when the client goes away. */
import { create as contentDisposition } from 'content-disposition';
import type { FastifyReply } from 'fastify';
import mimeTypes from 'mime-types';
import { RangeNotSatisfiable } from '../hypermedia/errors.ts';
import type { ByteRange, Storage } from '../storage/storage.ts';
import { nameOf } from './paths.ts';

const UNKNOWN_TYPE = 'application/octet-stream';

/** Where the wire differs from the registry of media types, or knows more. */
const TYPES: Readonly<Record<string, string>> = {
  bz2: 'application/x-bzip',
  chrislink: UNKNOWN_TYPE,
  log: UNKNOWN_TYPE,
  py: 'text/x-python',
  ts: UNKNOWN_TYPE,
  xz: 'application/x-xz',
};

/** The media type that a file's name stands for; compressed files by their last extension. Without a charset. */
export function contentTypeOf(name: string): string {
  const dot = name.lastIndexOf('.');
  if (dot < 0) return UNKNOWN_TYPE;
  const extension = name.slice(dot + 1).toLowerCase();
  return TYPES[extension] ?? (mimeTypes.lookup(`.${extension}`) || UNKNOWN_TYPE);
}

export interface Download {
  /** Path in the tree; its last component is the name that the client is told. */
  readonly path: string;
  /** Where the bytes lie. */
  readonly storagePath: string;
  readonly sizeBytes: number;
  /** 32 bytes, or null when the bytes were never read by this server. */
  readonly sha256: Buffer | null;
  /** Of the row: tells versions apart where there is no hash. */
  readonly id: number;
}

/** A strong validator: by content where its hash is known. */
export function etagOf(file: Pick<Download, 'id' | 'sizeBytes' | 'sha256'>): string {
  return file.sha256 === null ? `"${file.id}-${file.sizeBytes}"` : `"${file.sha256.toString('base64url')}"`;
}

/**
 * The one range that a `Range` header asks for (RFC 9110, 14.2).
 * @returns null for everything: no header, another unit, several ranges, or a header that cannot be read
 * @throws {RangeNotSatisfiable} when the range has no byte of the file
 */
export function parseRange(header: string | undefined, sizeBytes: number): ByteRange | null {
  const match = /^bytes=[ \t]*(\d*)-(\d*)[ \t]*$/i.exec(header ?? '');
  const [, first = '', last = ''] = match ?? [];
  if (first === '' && last === '') return null;
  if (first === '') {
    const length = Math.min(Number(last), sizeBytes);
    if (length === 0) throw new RangeNotSatisfiable(sizeBytes);
    return { start: sizeBytes - length, end: sizeBytes - 1 };
  }
  const start = Number(first);
  const end = last === '' ? Infinity : Number(last);
  if (end < start) return null;
  if (start >= sizeBytes) throw new RangeNotSatisfiable(sizeBytes);
  return { start, end: Math.min(end, sizeBytes - 1) };
}

/** The headers that every download has, whatever part of it is sent. Stored pages must not run scripts from this origin. */
export function downloadHeaders(file: Download): Readonly<Record<string, string>> {
  const name = nameOf(file.path);
  return {
    'content-type': contentTypeOf(name),
    'content-disposition': contentDisposition(name),
    'accept-ranges': 'bytes',
    etag: etagOf(file),
    'x-content-type-options': 'nosniff',
    'content-security-policy': "sandbox; default-src 'none'",
  };
}

/**
 * Answers GET and HEAD with a file: 200, 206 for a range, 304 when the client has it already. The handler ends with it:
 * `return sendFile(…)`. When the client goes away the reading stops.
 * @throws {BytesMissing} {RangeNotSatisfiable} before anything was sent
 */
export async function sendFile(reply: FastifyReply, storage: Storage, file: Download): Promise<FastifyReply> {
  const { headers, method } = reply.request;
  const etag = etagOf(file);
  if (namesTag(headers['if-none-match'], etag)) return reply.code(304).headers({ etag }).send();

  const applies = headers['if-range'] === undefined || headers['if-range'] === etag;
  const range = applies ? parseRange(headers.range, file.sizeBytes) : null;
  const length = range === null ? file.sizeBytes : range.end - range.start + 1;
  // Opened before any header is set: an error answers with headers of its own.
  const bytes =
    method === 'HEAD' || length === 0 ? undefined : await storage.read(file.storagePath, range ?? undefined);
  reply
    .code(range === null ? 200 : 206)
    .headers(downloadHeaders(file))
    .header('content-length', length);
  if (range !== null) reply.header('content-range', `bytes ${range.start}-${range.end}/${file.sizeBytes}`);
  return reply.send(bytes);
}

/** Whether `If-None-Match` names a tag; weak comparison. */
function namesTag(header: string | undefined, etag: string): boolean {
  if (header === undefined) return false;
  return header.trim() === '*' || header.split(',').some((tag) => tag.trim().replace(/^W\//, '') === etag);
}
