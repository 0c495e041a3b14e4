import assert from 'node:assert/strict';
import { existsSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { buffer } from 'node:stream/consumers';
import { test } from 'node:test';
import { fromBufferPromise } from 'yauzl';
import { ZipFile } from 'yazl';
import { CollectionFailed, ServiceRefused, ServiceUnreachable, SubmissionFailed } from '../../src/compute/errors.ts';
import { PfconEngine, type PfconEngineOptions } from '../../src/compute/pfcon.ts';
import { Bench, makeJob } from './bench.ts';
import { jobAnswer, ScriptedService } from './scripted-service.ts';

const ZIP = { inNetwork: false, requiresCopyJob: false, requiresUploadJob: false };
const SHARED = { inNetwork: true, requiresCopyJob: true, requiresUploadJob: false };

function engineOf(bench: Bench, service: ScriptedService, more: Partial<PfconEngineOptions> = {}) {
  const tokens: string[] = [];
  const engine = new PfconEngine({
    computeUrl: service.url,
    authUrl: '',
    username: 'pfcon',
    password: 'secret word',
    token: 'good',
    onToken: async (token) => {
      tokens.push(token);
    },
    described: ZIP,
    storage: bench.storage,
    dataDirectory: bench.dataDirectory,
    missingFilesSeconds: 0.3,
    deletionSeconds: 0.5,
    ...more,
  });
  return { engine, tokens };
}

async function zipOf(files: Record<string, string>): Promise<Buffer> {
  const zip = new ZipFile();
  for (const [name, content] of Object.entries(files)) zip.addBuffer(Buffer.from(content), name, { compress: false });
  zip.end();
  return buffer(zip.outputStream);
}

async function unzip(bytes: Buffer): Promise<Record<string, string>> {
  const zip = await fromBufferPromise(bytes, { lazyEntries: true });
  const files: Record<string, string> = {};
  await new Promise<void>((resolve, reject) => {
    zip.on('entry', async (entry) => {
      files[entry.fileName] = (await buffer(await zip.openReadStreamPromise(entry))).toString();
      zip.readEntry();
    });
    zip.on('end', resolve).on('error', reject);
    zip.readEntry();
  });
  return files;
}

const withCode = (code: string, message: RegExp) => (error: unknown) => {
  assert.ok(error instanceof CollectionFailed, String(error));
  assert.equal(error.code, code, error.message);
  assert.match(error.message, message);
  return true;
};

test('a service tells who it is; what is no such service, or shares another storage, is refused', async () => {
  await using bench = await Bench.open();
  await using service = await ScriptedService.open();
  const { engine } = engineOf(bench, service);
  const about = {
    server_version: '5',
    pfcon_innetwork: true,
    storage_env: 'fslink',
    requires_copy_job: true,
    requires_upload_job: false,
  };
  service.answer = () => ({ status: 200, body: about });
  assert.deepEqual(await engine.describe(), SHARED);
  service.answer = () => ({ status: 200, body: { ...about, storage_env: 'swift' } });
  await assert.rejects(
    engine.describe(),
    (error) => error instanceof ServiceRefused && /swift.*fslink/.test(error.message),
  );
  service.answer = () => ({ status: 200, body: { ...about, pfcon_innetwork: false, storage_env: 'other' } });
  assert.equal((await engine.describe()).inNetwork, false);
  for (const answer of [
    { status: 200, body: ['no'] },
    { status: 404, body: {} },
  ]) {
    service.answer = () => answer;
    await assert.rejects(engine.describe(), ServiceRefused);
  }
  service.answer = () => ({ status: 503 });
  await assert.rejects(engine.describe(), ServiceUnreachable);
  service.token = 'other';
  service.refuseToken = { status: 400, body: { message: 'no' } };
  await assert.rejects(
    engine.describe(),
    (error) => error instanceof ServiceRefused && !/secret word/.test(error.message),
  );
});

test('a service that is gone is unreachable', async () => {
  await using bench = await Bench.open();
  const service = await ScriptedService.open();
  const { engine } = engineOf(bench, service);
  await service[Symbol.asyncDispose]();
  const job = makeJob(bench);
  const calls = [
    () => engine.describe(),
    () => engine.submit('plugin', job),
    () => engine.inspect('plugin', job),
    () => engine.collect(job),
    () => engine.cancel(job.id),
    () => engine.remove(job.id),
  ];
  for (const call of calls) await assert.rejects(call, ServiceUnreachable);
});

test('a token that is out of date is renewed once for all requests, and stored', async () => {
  await using bench = await Bench.open();
  await using service = await ScriptedService.open();
  service.token = 'new';
  service.answer = () => ({ status: 200, body: jobAnswer('started') });
  const { engine, tokens } = engineOf(bench, service, { token: 'old' });
  const jobs = Array.from({ length: 5 }, () => makeJob(bench));
  const states = await Promise.all(jobs.map((job) => engine.inspect('plugin', job)));
  assert.ok(states.every((state) => state?.status === 'started'));
  assert.deepEqual(tokens, ['new']);
  assert.deepEqual(
    service.of('POST /auth-token/').map(({ json }) => json),
    [{ pfcon_user: 'pfcon', pfcon_password: 'secret word' }],
  );
  service.token = 'never given';
  service.refuseToken = { status: 400 };
  await assert.rejects(engine.inspect('plugin', makeJob(bench)), ServiceUnreachable);
  await assert.rejects(engine.submit('copy', makeJob(bench)), { retry: false, message: /refuses the user "pfcon"/ });
});

test('redirects to other hosts are not followed', async () => {
  await using bench = await Bench.open();
  await using service = await ScriptedService.open();
  await using other = await ScriptedService.open();
  const { engine } = engineOf(bench, service);
  service.answer = ({ path }) => ({ status: 308, headers: { location: `${other.url}${path}` } });
  await assert.rejects(engine.inspect('plugin', makeJob(bench)), ServiceUnreachable);
  assert.equal(other.asked.length, 0);
  service.answer = ({ path }) =>
    path.endsWith('/moved/')
      ? { status: 200, body: jobAnswer('started') }
      : { status: 308, headers: { location: 'moved/' } };
  assert.equal((await engine.inspect('plugin', makeJob(bench)))?.status, 'started');
});

test('submissions are form bodies with the fields of the protocol', async () => {
  await using bench = await Bench.open();
  await using service = await ScriptedService.open();
  service.answer = () => ({ status: 201, body: jobAnswer('notStarted') });
  const { engine } = engineOf(bench, service, { described: SHARED });
  const job = makeJob(bench, {
    image: 'localhost/pl-x:1',
    entrypoint: ['python3', '/bin/x'],
    arguments: ['--dir', 'in', '--empty', ''],
    pathFlags: ['--dir'],
    environment: { CHRIS_JID: 'j', CHRIS_USER_TOKEN: 't=1' },
    inputPaths: ['in', 'more'],
  });
  assert.equal((await engine.submit('copy', job)).status, 'notStarted');
  await engine.submit('plugin', job);
  await engine.submit('upload', job);
  const [copy, plugin, upload] = service.asked.map(({ form }) => [...(form ?? [])]);
  assert.ok(service.asked.every(({ type }) => type === 'application/x-www-form-urlencoded'));
  assert.deepEqual(copy, [
    ['jid', job.id],
    ['input_dirs', 'in'],
    ['input_dirs', 'more'],
    ['output_dir', job.outputPath],
    ['cpu_limit', '1000'],
    ['memory_limit', '200'],
  ]);
  assert.deepEqual(upload, [
    ['jid', job.id],
    ['job_output_path', job.outputPath],
    ['cpu_limit', '1000'],
    ['memory_limit', '200'],
  ]);
  assert.deepEqual(plugin, [
    ['jid', job.id],
    ['entrypoint', 'python3'],
    ['entrypoint', '/bin/x'],
    ['args', '--dir'],
    ['args', 'in'],
    ['args', '--empty'],
    ['args', ''],
    ['args_path_flags', '--dir'],
    ['auid', 'alice'],
    ['number_of_workers', '1'],
    ['cpu_limit', '1000'],
    ['memory_limit', '200'],
    ['gpu_limit', '0'],
    ['image', 'localhost/pl-x:1'],
    ['type', 'ds'],
    ['env', 'CHRIS_JID=j'],
    ['env', 'CHRIS_USER_TOKEN=t=1'],
    ['input_dirs', 'in'],
    ['input_dirs', 'more'],
    ['output_dir', job.outputPath],
  ]);
});

test('refused submissions tell whether to try again', async () => {
  await using bench = await Bench.open();
  await using service = await ScriptedService.open();
  const { engine } = engineOf(bench, service, { described: SHARED });
  for (const [status, retry] of [
    [400, false],
    [404, false],
    [409, true],
    [429, true],
    [500, true],
  ] as const) {
    service.answer = () => ({ status, body: { message: { image: 'unknown' } } });
    await assert.rejects(
      engine.submit('plugin', makeJob(bench)),
      (error) => error instanceof SubmissionFailed && error.retry === retry && /unknown/.test(error.message),
    );
  }
  service.answer = () => ({ status: 201, body: { compute: {} } });
  await assert.rejects(engine.submit('plugin', makeJob(bench)), ServiceUnreachable);
});

test('outside of its network the service gets the input as a zip, and its zip becomes the output', async () => {
  await using bench = await Bench.open();
  await bench.put('in/sub/b.txt', 'second'.repeat(1000));
  await using service = await ScriptedService.open();
  const { engine } = engineOf(bench, service, { token: '' });
  service.answer = () => ({ status: 201, body: jobAnswer('notStarted') });
  const job = makeJob(bench, {
    zippedInputs: async function* () {
      yield { relativePath: 'x.chrislink', storagePath: null, content: 'in/sub', sizeBytes: 6 };
      yield { relativePath: 'in/sub/b.txt', storagePath: 'in/sub/b.txt', sizeBytes: 6000 };
    },
  });
  await engine.submit('plugin', job);
  const [asked] = service.of('POST /pluginjobs/');
  assert.equal(asked?.type, 'multipart/form-data');
  assert.equal(asked?.form?.get('output_dir'), null);
  const file = asked?.form?.get('data_file');
  assert.ok(file instanceof File);
  assert.deepEqual(await unzip(Buffer.from(await file.arrayBuffer())), {
    'x.chrislink': 'in/sub',
    'in/sub/b.txt': 'second'.repeat(1000),
  });
  const output = await zipOf({ 'out.txt': 'hello', 'd/e.txt': 'x'.repeat(100_000) });
  service.answer = () => ({ status: 200, body: output, headers: { 'content-type': 'application/zip' } });
  for (let turn = 0; turn < 2; turn++) assert.deepEqual(await engine.collect(job), ['d/e.txt', 'out.txt']);
  assert.equal(bench.read(`${job.outputPath}/out.txt`), 'hello');
  assert.equal(existsSync(join(bench.dataDirectory, 'jobs', job.id, 'output.zip')), false);
  const none = makeJob(bench, { zippedInputs: async function* () {} });
  service.answer = () => ({ status: 201, body: jobAnswer('notStarted') });
  await engine.submit('plugin', none);
  const placeholder = service.of('POST /pluginjobs/').at(-1)?.form?.get('data_file');
  assert.ok(placeholder instanceof File);
  assert.equal(Object.keys(await unzip(Buffer.from(await placeholder.arrayBuffer()))).length, 1);
});

test('input that cannot be read fails the submission', async () => {
  await using bench = await Bench.open();
  await using service = await ScriptedService.open();
  const { engine } = engineOf(bench, service);
  await bench.put('in/a', 'abc');
  for (const [storagePath, sizeBytes] of [
    ['in/gone', 1],
    ['in/a', 2],
  ] as const) {
    const job = makeJob(bench, {
      zippedInputs: async function* () {
        yield { relativePath: 'a', storagePath, sizeBytes };
      },
    });
    await assert.rejects(
      engine.submit('plugin', job),
      (error) => error instanceof SubmissionFailed && error.code === 'CODE01',
    );
  }
  assert.deepEqual(service.asked, []);
});

test('damaged and malicious zips are refused and leave nothing outside of the output folder', async () => {
  await using bench = await Bench.open();
  await using service = await ScriptedService.open();
  const { engine } = engineOf(bench, service);
  const good = await zipOf({ 'aaaa.txt': 'the content', 'bbbb.txt': 'more' });
  const renamed = (name: string) => Buffer.from(good.toString('latin1').replaceAll('aaaa.txt', name), 'latin1');
  const changed = Buffer.from(good.toString('latin1').replace('the content', 'THE content'), 'latin1');
  const cases: [Buffer, RegExp][] = [
    [Buffer.from('no zip'), /damaged/],
    [good.subarray(0, good.length - 10), /damaged/],
    [changed, /checksum/],
    [renamed('../x.txt'), /\.\.\/x\.txt/],
    [renamed('/abs.txt'), /abs\.txt/],
    [renamed('a/../b.t'), /a\/\.\.\/b\.t/],
    [renamed('b\0bb.txt'), /control character/],
    [renamed('bbbb.txt'), /two files "bbbb\.txt"/],
  ];
  for (const [body, message] of cases) {
    const job = makeJob(bench);
    service.answer = () => ({ status: 200, body });
    await assert.rejects(engine.collect(job), withCode('CODE04', message));
  }
  const job = makeJob(bench);
  service.answer = () => ({ status: 404, body: { message: 'no data' } });
  await assert.rejects(engine.collect(job), withCode('CODE03', /404 no data/));
  service.answer = () => ({ status: 200, body: good, breakAfter: 20 });
  await assert.rejects(engine.collect(job), ServiceUnreachable);
  const paths = [];
  for await (const { path } of bench.storage.list('home')) paths.push(path);
  assert.ok(
    paths.every((path) => path.includes('/data/')),
    String(paths),
  );
});

test('files that an in-network service lists must be in storage', async () => {
  await using bench = await Bench.open();
  await using service = await ScriptedService.open();
  const { engine } = engineOf(bench, service, { described: SHARED, missingFilesSeconds: 5 });
  const impatient = engineOf(bench, service, { described: SHARED }).engine;
  const job = makeJob(bench, { outputPath: 'home/alice/a b&c/data' });
  const list = (paths: unknown, path = `/${job.outputPath}/`) => {
    service.answer = () => ({ status: 200, body: { job_output_path: path, rel_file_paths: paths } });
  };
  await bench.put(`${job.outputPath}/here`, 'x');
  list(['here', 'late']);
  const collecting = engine.collect(job);
  await bench.put(`${job.outputPath}/late`, 'x');
  assert.deepEqual(await collecting, ['here', 'late']);
  assert.equal(new URL(service.asked[0]?.path ?? '', service.url).searchParams.get('job_output_path'), job.outputPath);
  list(['here', 'never']);
  await assert.rejects(impatient.collect(job), withCode('CODE14', /"never"/));
  symlinkSync('/etc', bench.path(`${job.outputPath}/etc`));
  list(['etc/passwd']);
  await assert.rejects(impatient.collect(job), withCode('CODE14', /etc\/passwd/));
  list(['here'], 'home/bob');
  await assert.rejects(engine.collect(job), withCode('CODE16', /home\/bob/));
  list(['../../secret']);
  await assert.rejects(engine.collect(job), withCode('CODE16', /secret/));
  list('here');
  await assert.rejects(engine.collect(job), withCode('CODE03', /list/));
});

test('a watched job is asked for until it has ended, over silence of the service', async () => {
  await using bench = await Bench.open();
  await using service = await ScriptedService.open();
  const { engine } = engineOf(bench, service);
  const script = [
    { status: 200, body: jobAnswer('started') },
    { status: 503 },
    { status: 200, body: jobAnswer('started') },
    { status: 200, body: jobAnswer('finishedWithError') },
  ];
  const job = makeJob(bench);
  service.answer = () => script[Math.min(service.asked.length, script.length) - 1] ?? { status: 500 };
  await new Promise<void>((resolve) => engine.watch('plugin', job, resolve));
  assert.equal(service.asked.length, 4);
  service.answer = () => ({ status: 404 });
  await new Promise<void>((resolve) => engine.watch('plugin', job, resolve));
  assert.equal(await engine.inspect('plugin', job), null);
  service.answer = () => ({ status: 200, body: jobAnswer('strange') });
  assert.equal((await engine.inspect('plugin', job))?.status, 'undefined');
  const watching = engine.watch('plugin', job, () => assert.fail('it was stopped'));
  watching.stop();
  await engine.close();
});

test('a skipped copy has ended although the service knows no such job', async () => {
  await using bench = await Bench.open();
  await using service = await ScriptedService.open();
  const { engine } = engineOf(bench, service, { described: SHARED });
  service.answer = ({ method }) =>
    method === 'POST'
      ? { status: 201, body: jobAnswer('finishedSuccessfully', { message: 'copySkipped', timestamp: '' }) }
      : { status: 404 };
  const job = makeJob(bench);
  assert.equal((await engine.submit('copy', job)).status, 'finishedSuccessfully');
  assert.equal((await engine.inspect('copy', job))?.status, 'finishedSuccessfully');
});

test('cancelling and removing end and delete what the service keeps', async () => {
  await using bench = await Bench.open();
  await using service = await ScriptedService.open();
  const { engine } = engineOf(bench, service, { described: SHARED });
  let deletion = 'notStarted';
  service.answer = ({ method, path }) => {
    if (method === 'DELETE') return { status: 204 };
    if (path !== '/deletejobs/') deletion = 'finishedSuccessfully';
    return { status: method === 'POST' ? 201 : 200, body: jobAnswer(deletion) };
  };
  await engine.cancel('j-1');
  assert.deepEqual(service.asked.map(({ method, path }) => `${method} ${path}`).sort(), [
    'DELETE /copyjobs/j-1/',
    'DELETE /pluginjobs/j-1/',
  ]);
  service.asked.length = 0;
  await engine.remove('j-1');
  assert.deepEqual([...(service.asked[0]?.form ?? [])], [['jid', 'j-1']]);
  assert.deepEqual(
    service.asked.slice(0, 2).map(({ method, path }) => `${method} ${path}`),
    ['POST /deletejobs/', 'GET /deletejobs/j-1/'],
  );
  assert.deepEqual(
    service
      .of('DELETE')
      .map(({ path }) => path)
      .sort(),
    ['/copyjobs/j-1/', '/deletejobs/j-1/', '/pluginjobs/j-1/'],
  );
  service.asked.length = 0;
  service.answer = ({ method }) =>
    method === 'DELETE'
      ? { status: 204 }
      : { status: 201, body: jobAnswer('finishedSuccessfully', { message: 'deleteSkipped' }) };
  await engine.remove('j-1');
  assert.equal(service.of('GET').length, 0, 'a skipped deletion is not asked for');
  service.answer = () => ({ status: 409, body: { message: 'still active' } });
  await assert.rejects(
    engine.remove('j-1'),
    (error) => error instanceof ServiceUnreachable && /still active/.test(error.message),
  );
  service.answer = () => ({ status: 201, body: jobAnswer('started') });
  await assert.rejects(engine.remove('j-1'), /still deletes/);
});
