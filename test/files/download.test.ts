import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { mkdtemp, readdir, readlink, rm } from 'node:fs/promises';
import { type IncomingMessage, request } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { after, before, describe, it } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import { parse } from 'content-disposition';
import fc from 'fast-check';
import fastify, { type FastifyInstance } from 'fastify';
import {
  contentTypeOf,
  type Download,
  downloadHeaders,
  etagOf,
  parseRange,
  sendFile,
} from '../../src/files/download.ts';
import { RangeNotSatisfiable, RequestError } from '../../src/hypermedia/errors.ts';
import { FilesystemStorage } from '../../src/storage/filesystem.ts';

const SIZE = 8 * 1024 * 1024;

describe('a range', () => {
  const everything = [
    '',
    'bytes',
    'bytes=',
    'bytes=-',
    'bytes=a-b',
    'bytes=1-2,4-5',
    'bytes=5-4',
    'items=0-1',
    'bytes=--1',
    'bytes=0x1-2',
    undefined,
  ];
  for (const header of everything)
    it(`${JSON.stringify(header)} means everything`, () => assert.equal(parseRange(header, 10), null));

  for (const header of ['bytes=10-', 'bytes=10-11', 'bytes=-0', `bytes=${'9'.repeat(400)}-`]) {
    it(`${header.slice(0, 20)} cannot be had`, () => assert.throws(() => parseRange(header, 10), RangeNotSatisfiable));
  }
  it('of an empty file cannot be had', () => {
    assert.throws(() => parseRange('bytes=0-', 0), RangeNotSatisfiable);
    assert.throws(() => parseRange('bytes=-5', 0), RangeNotSatisfiable);
  });

  it('ends with the file', () => {
    assert.deepEqual(parseRange('bytes=0-', 10), { start: 0, end: 9 });
    assert.deepEqual(parseRange('bytes=2-3', 10), { start: 2, end: 3 });
    assert.deepEqual(parseRange('Bytes= 9-99 ', 10), { start: 9, end: 9 });
    assert.deepEqual(parseRange('bytes=-3', 10), { start: 7, end: 9 });
    assert.deepEqual(parseRange('bytes=-30', 10), { start: 0, end: 9 });
    assert.deepEqual(parseRange(`bytes=1-${'9'.repeat(400)}`, 10), { start: 1, end: 9 });
  });

  it('always lies in the file, whatever is sent', () => {
    const header = fc.oneof(
      fc.string(),
      fc
        .tuple(fc.string({ unit: fc.constantFrom('0', '7', '9', '-') }), fc.constantFrom('', ','))
        .map((parts) => `bytes=${parts.join('')}`),
    );
    fc.assert(
      fc.property(header, fc.nat(1000), (text, size) => {
        try {
          const range = parseRange(text, size);
          if (range !== null)
            assert.ok(range.start >= 0 && range.start <= range.end && range.end < size, JSON.stringify(range));
        } catch (error) {
          assert.ok(error instanceof RangeNotSatisfiable, String(error));
        }
      }),
    );
  });
});

describe('what a download says of itself', () => {
  const types = {
    'a.txt': 'text/plain',
    'A.TXT': 'text/plain',
    'a.json': 'application/json',
    'a.csv': 'text/csv',
    'a.html': 'text/html',
    'a.md': 'text/markdown',
    'a.xml': 'application/xml',
    'a.js': 'text/javascript',
    'a.png': 'image/png',
    'a.svg': 'image/svg+xml',
    'a.pdf': 'application/pdf',
    'a.dcm': 'application/dicom',
    'a.zip': 'application/zip',
    'a.nii.gz': 'application/gzip',
    'a.tar.gz': 'application/gzip',
    'a.bz2': 'application/x-bzip',
    'a.xz': 'application/x-xz',
    'a.py': 'text/x-python',
    'a.log': 'application/octet-stream',
    'a.chrislink': 'application/octet-stream',
    a: 'application/octet-stream',
    txt: 'application/octet-stream',
    'a.': 'application/octet-stream',
    'a.nii': 'application/octet-stream',
  };
  for (const [name, type] of Object.entries(types))
    it(`${name} is ${type}`, () => assert.equal(contentTypeOf(name), type));

  it('names the file so that nothing can be put into the header', () => {
    for (const name of ['a b.txt', 'quo"te\\.txt', 'Größe.txt', '脑 "x".nii.gz', '%41.txt', 'a;filename=b.html']) {
      const header =
        downloadHeaders({ path: `home/a/${name}`, storagePath: '', sizeBytes: 1, sha256: null, id: 1 })[
          'content-disposition'
        ] ?? '';
      assert.match(header, /^attachment; /);
      assert.match(header, /^[\x20-\x7e]*$/, 'printable ASCII');
      assert.equal(parse(header).parameters.filename, name);
    }
  });

  it('has a tag by content, else by row and size', () => {
    const one = { id: 1, sizeBytes: 2, sha256: null };
    assert.notEqual(etagOf(one), etagOf({ ...one, sizeBytes: 3 }));
    assert.notEqual(etagOf(one), etagOf({ ...one, id: 3 }));
    const sha256 = createHash('sha256').digest();
    assert.equal(etagOf({ ...one, sha256 }), etagOf({ id: 9, sizeBytes: 9, sha256 }));
  });
});

describe('sending a file', () => {
  const bytes = Buffer.from(Array.from({ length: SIZE / 1024 }, (_, i) => String(i).padEnd(1024)).join(''));
  let root: string;
  let app: FastifyInstance;
  let address: string;
  let download: Download;

  before(async () => {
    root = await mkdtemp(join(tmpdir(), 'download-'));
    const storage = await FilesystemStorage.open(root, 1);
    const file = await storage.receive(Readable.from([bytes]));
    await storage.place(file, 'home/a/x.txt');
    await storage.place(await storage.receive(Readable.from([])), 'home/a/empty.html');
    download = { path: 'home/a/x.txt', storagePath: 'home/a/x.txt', sizeBytes: SIZE, sha256: file.sha256, id: 1 };
    app = fastify({ exposeHeadRoutes: false });
    app.setErrorHandler((error, _request, reply) => {
      if (!(error instanceof RequestError)) throw error;
      return reply.code(error.status).headers(error.headers).send(error.body());
    });
    const files: Record<string, Download> = {
      x: download,
      empty: { ...download, path: 'home/a/empty.html', storagePath: 'home/a/empty.html', sizeBytes: 0, sha256: null },
      missing: { ...download, storagePath: 'home/a/missing' },
    };
    app.route<{ Params: { name: string } }>({
      method: ['GET', 'HEAD'],
      url: '/:name',
      handler: (request, reply) => sendFile(reply, storage, files[request.params.name] ?? download),
    });
    address = await app.listen({ port: 0, host: '127.0.0.1' });
  });
  after(async () => {
    await app.close();
    await rm(root, { recursive: true, force: true });
  });

  const openHandles = async () => {
    const links = await Promise.all(
      (await readdir('/proc/self/fd')).map((fd) => readlink(`/proc/self/fd/${fd}`).catch(() => '')),
    );
    return links.filter((link) => link.startsWith(root)).length;
  };
  const untilClosed = async () => {
    for (let i = 0; i < 500 && (await openHandles()) > 0; i += 1) await pause(10);
    assert.equal(await openHandles(), 0);
  };

  it('that is missing answers 404 and nothing of a download', async () => {
    const answer = await fetch(`${address}/missing`);
    assert.equal(answer.status, 404);
    assert.equal(answer.headers.get('content-disposition'), null);
    assert.match(JSON.stringify(await answer.json()), /home\/a\/missing/);
  });

  it('outside of its bytes answers 416 with its size', async () => {
    const answer = await fetch(`${address}/x`, { headers: { range: `bytes=${SIZE}-` } });
    assert.equal(answer.status, 416);
    assert.equal(answer.headers.get('content-range'), `bytes */${SIZE}`);
    assert.equal(answer.headers.get('content-disposition'), null);
  });

  it('to a client that goes away ends the reading', async (t) => {
    if (process.platform !== 'linux') return t.skip('counts open files in /proc');
    const asked = request(`${address}/x`).end();
    const [answer]: IncomingMessage[] = await once(asked, 'response');
    assert.ok(answer);
    answer.once('data', () => asked.destroy());
    await once(asked, 'close');
    await untilClosed();
  });

  it('sends all of it with its headers', async (t) => {
    const answer = await fetch(`${address}/x`);
    assert.equal(answer.status, 200);
    assert.ok(Buffer.from(await answer.arrayBuffer()).equals(bytes));
    assert.equal(answer.headers.get('content-length'), String(SIZE));
    assert.equal(answer.headers.get('content-type'), 'text/plain');
    assert.equal(answer.headers.get('accept-ranges'), 'bytes');
    assert.equal(answer.headers.get('x-content-type-options'), 'nosniff');
    assert.match(answer.headers.get('content-security-policy') ?? '', /^sandbox;/);
    assert.match(answer.headers.get('content-disposition') ?? '', /^attachment; filename="?x\.txt"?$/);
    if (process.platform === 'linux') await untilClosed();
    else t.diagnostic('open files were not counted');
  });

  it('sends a range', async () => {
    const answer = await fetch(`${address}/x`, { headers: { range: 'bytes=1022-1030' } });
    assert.equal(answer.status, 206);
    assert.equal(await answer.text(), bytes.subarray(1022, 1031).toString());
    assert.equal(answer.headers.get('content-length'), '9');
    assert.equal(answer.headers.get('content-range'), `bytes 1022-1030/${SIZE}`);
  });

  it('sends a range of what the client has begun to load, and everything of something else', async () => {
    const same = await fetch(`${address}/x`, { headers: { range: 'bytes=0-0', 'if-range': etagOf(download) } });
    assert.equal(same.status, 206);
    await same.arrayBuffer();
    const other = await fetch(`${address}/x`, { headers: { range: 'bytes=0-0', 'if-range': '"other"' } });
    assert.equal(other.status, 200);
    assert.equal((await other.arrayBuffer()).byteLength, SIZE);
  });

  it('answers 304 to a client that has it', async () => {
    const answer = await fetch(`${address}/x`, { headers: { 'if-none-match': `"other", W/${etagOf(download)}` } });
    assert.equal(answer.status, 304);
    assert.equal(answer.headers.get('etag'), etagOf(download));
  });

  it('answers HEAD like GET, without the bytes', async () => {
    const answer = await fetch(`${address}/x`, { method: 'HEAD' });
    assert.equal(answer.status, 200);
    assert.equal(answer.headers.get('content-length'), String(SIZE));
    assert.equal((await answer.arrayBuffer()).byteLength, 0);
  });

  it('sends an empty file', async () => {
    const answer = await fetch(`${address}/empty`);
    assert.equal(answer.status, 200);
    assert.equal(answer.headers.get('content-length'), '0');
    assert.equal(answer.headers.get('content-type'), 'text/html');
    assert.equal(await answer.text(), '');
  });
});
