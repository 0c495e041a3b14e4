import assert from 'node:assert/strict';
import { once } from 'node:events';
import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { createServer, type RequestListener } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { stripVTControlCharacters } from 'node:util';
import { deflateSync } from 'node:zlib';
import { ApiError, Client } from '../../src/commands/demo/client.ts';
import { findContainerEngine } from '../../src/commands/demo/container-engine.ts';
import { OutputFolder } from '../../src/commands/demo/output-folder.ts';
import { programLog } from '../../src/commands/demo/program-log.ts';
import { formatBytes, progressBar, Screen } from '../../src/commands/demo/screen.ts';
import { listOutput } from '../../src/commands/demo/steps.ts';
import { drawTree, type Instance } from '../../src/commands/demo/tree.ts';

test('other people’s files are never touched: the output goes beside them', async (context) => {
  const wanted = join(await temporaryFolder(context), 'out');
  await mkdir(join(wanted, 'pictures'), { recursive: true });
  await writeFile(join(wanted, 'pictures', 'mine.png'), 'mine');
  const folder = await OutputFolder.open(wanted);
  assert.equal(folder.path, `${wanted}-2`);
  assert.equal(await readFile(join(wanted, 'pictures', 'mine.png'), 'utf8'), 'mine');
});

test('the output of an earlier demo is replaced, unless something was added to it', async (context) => {
  const wanted = join(await temporaryFolder(context), 'out');
  const first = await OutputFolder.open(wanted);
  await writeFile(await first.place('pictures/old/slice.png'), 'old');
  const second = await OutputFolder.open(wanted);
  assert.equal(second.path, wanted);
  assert.deepEqual(await readdir(wanted), []);
  await writeFile(await second.place('summary.csv'), 'new');
  await writeFile(join(wanted, 'notes.txt'), 'mine');
  assert.equal((await OutputFolder.open(wanted)).path, `${wanted}-2`);
  assert.deepEqual((await readdir(wanted)).sort(), ['.hypercube-demo', 'notes.txt', 'summary.csv']);
});

test('a file that the server names cannot leave the output folder', async (context) => {
  const folder = await OutputFolder.open(join(await temporaryFolder(context), 'out'));
  for (const path of ['../escaped', '/etc/escaped', 'a/../../escaped', '']) {
    await assert.rejects(folder.place(path), /outside of the output/);
  }
});

test('an upload that is refused is an error with the answer', async (context) => {
  const client = await clientOf(context, (_request, response) => {
    response.writeHead(400, { 'content-type': 'application/json' }).end('{"upload_path":["no"]}');
  });
  const file = join(await temporaryFolder(context), 'file');
  await writeFile(file, 'content');
  await assert.rejects(
    client.upload('/api/v1/userfiles/', { upload_path: 'home' }, file, () => {}),
    (error) => error instanceof ApiError && /status 400 .*upload_path/.test(error.message),
  );
});

test('an upload arrives as multipart, and its progress adds up to its size', async (context) => {
  const received = Promise.withResolvers<FormData>();
  const client = await clientOf(context, async (request, response) => {
    const pieces: Uint8Array[] = [];
    for await (const piece of request) pieces.push(piece);
    const body = Buffer.concat(pieces);
    assert.equal(request.headers['content-length'], String(body.length));
    const type = request.headers['content-type'] ?? '';
    received.resolve(await new Response(body, { headers: { 'content-type': type } }).formData());
    response.writeHead(201).end('{}');
  });
  const content = Buffer.alloc(300_000, 'abc');
  const file = join(await temporaryFolder(context), 'file');
  await writeFile(file, content);
  const steps: number[] = [];
  await client.upload('/', { upload_path: 'home/demo/uploads/é.dcm' }, file, (bytes) => steps.push(bytes));
  const form = await received.promise;
  assert.equal(form.get('upload_path'), 'home/demo/uploads/é.dcm');
  const sent = form.get('fname');
  assert.ok(sent instanceof Blob);
  assert.ok(content.equals(Buffer.from(await sent.arrayBuffer())));
  assert.ok(steps.length > 1);
  assert.equal(
    steps.reduce((sum, bytes) => sum + bytes, 0),
    content.length,
  );
});

test('all pages of a list are read', async (context) => {
  const client = await clientOf(context, (request, response) => {
    const url = new URL(request.url ?? '', `http://${request.headers.host}`);
    const offset = Number(url.searchParams.get('offset'));
    url.searchParams.set('offset', String(offset + 1));
    response.end(JSON.stringify({ count: 3, next: offset < 2 ? url.href : null, results: [offset] }));
  });
  assert.deepEqual(await client.getAll('/list/', { name: 'x' }), [0, 1, 2]);
});

test('nobody at the address is an error that names the request', async () => {
  const client = new Client({ baseUrl: 'http://127.0.0.1:1', signal: new AbortController().signal });
  await assert.rejects(client.get('/api/v1/'), /GET \/api\/v1\/: no answer/);
});

test('a socket that is none is no container engine', async (context) => {
  const path = join(await temporaryFolder(context), 'docker.sock');
  await writeFile(path, '');
  const engine = await findContainerEngine({ DOCKER_HOST: `unix://${path}` });
  assert.notEqual(engine?.socketPath, path);
});

test('the tree shows children below their parents', () => {
  const tree = [instance(1), instance(2, 1), instance(3, 2), instance(4, 1, 'finishedWithError', 'CODE13')];
  assert.deepEqual(
    drawTree(tree.toReversed(), (_style, text) => text),
    [
      '      plugin-1 1.0        started',
      '      ├─ plugin-2 1.0     started',
      '      │  └─ plugin-3 1.0  started',
      '      └─ plugin-4 1.0     finishedWithError CODE13',
    ],
  );
});

test('the log of a program is unpacked', () => {
  const raw = deflateSync(JSON.stringify({ compute: { logs: 'a\nb' } })).toString('base64');
  assert.equal(programLog(raw), 'a\nb');
  assert.equal(programLog(''), '');
});

test('a terminal that is none gets plain lines, each once', async () => {
  const written: string[] = [];
  const screen = new Screen({ write: (text) => written.push(text) }, {});
  await screen.step('Analysis', async (step) => {
    step.progress('half');
    step.lines(['a started']);
    step.lines(['a started', 'b waiting']);
    return { words: 'finished', outcome: null };
  });
  await assert.rejects(
    screen.step('Output', () => Promise.reject(new Error('no'))),
    /no/,
  );
  const [heading, first, second, third, fourth] = written;
  assert.deepEqual([heading, first, second], ['  … Analysis\n', 'a started\n', 'b waiting\n']);
  assert.match(third ?? '', /^ {2}✓ Analysis {5}finished {2}[\d.]+ s\n$/);
  assert.match(fourth ?? '', /^ {2}✗ Output {7}failed/);
  assert.ok(!written.join('').includes('\x1b'));
});

test('a terminal is redrawn in place, NO_COLOR is heeded', async () => {
  const draw = async (environment: Record<string, string>, columns = 80) => {
    const written: string[] = [];
    const screen = new Screen({ isTTY: true, columns, write: (text) => written.push(text) }, environment);
    await screen.step('Upload', async (step) => {
      step.lines(['below']);
      await new Promise((resolve) => setTimeout(resolve, 200));
      return { words: 'done', outcome: null };
    });
    return written.join('');
  };
  const drawn = await draw({});
  assert.ok(drawn.includes('\x1b[2A\r\x1b[J'));
  assert.match(stripVTControlCharacters(drawn), /✓ Upload +done/);
  assert.ok((await draw({}, 0)).includes('\x1b[2A\r\x1b[J'), 'a terminal that does not know its width');
  assert.ok(!(await draw({ NO_COLOR: '1' })).includes('\x1b'));
});

test('sizes and bars', () => {
  assert.deepEqual([999, 1000, 1_500_000, 2e9].map(formatBytes), ['999 B', '1.0 kB', '1.5 MB', '2.0 GB']);
  assert.deepEqual([progressBar(1, 4, 4), progressBar(0, 0, 2)], ['█░░░', '██']);
});

test('the output is listed by folder', () => {
  const files = [
    { path: 'summary.csv', sizeBytes: 10 },
    { path: 'pictures/a/1.png', sizeBytes: 600 },
    { path: 'pictures/a/2.png', sizeBytes: 600 },
  ];
  assert.deepEqual(listOutput(files), ['      summary.csv       10 B', '      pictures/a/     1.2 kB  2 files']);
});

async function temporaryFolder(context: TestContext): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'demo-test-'));
  context.after(() => rm(folder, { recursive: true, force: true }));
  return folder;
}

async function clientOf(context: TestContext, listener: RequestListener): Promise<Client> {
  const server = createServer(listener).listen(0, '127.0.0.1');
  context.after(() => server.close());
  await once(server, 'listening');
  const address = server.address();
  assert.ok(address !== null && typeof address === 'object');
  return new Client({ baseUrl: `http://127.0.0.1:${address.port}`, signal: new AbortController().signal });
}

function instance(id: number, previous_id?: number, status = 'started', error_code = ''): Instance {
  return {
    url: '',
    id,
    ...(previous_id !== undefined && { previous_id }),
    plugin_name: `plugin-${id}`,
    plugin_version: '1.0',
    feed_id: 1,
    status,
    active: false,
    error_code,
    start_date: '',
    end_date: '',
    output_path: '',
    raw: '',
  };
}
