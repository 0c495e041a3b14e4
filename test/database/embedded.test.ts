import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { chmod, mkdir, mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, beforeEach, test } from 'node:test';
import pg from 'pg';
import { isAlive } from '../../src/database/embedded/cluster.ts';
import { findPostmaster, stopPostmaster } from '../../src/database/embedded/postmaster.ts';
import { type EmbeddedDatabase, openEmbedded } from '../../src/database/embedded.ts';
import { DatabaseError, DataFolderInUse } from '../../src/database/errors.ts';

const QUICK = { fsync: 'off', shared_buffers: '16MB' };
const NOBODY = 65_534;

let base: string;
let data: string;
let processes: ChildProcess[] = [];

beforeEach(async () => {
  base = await mkdtemp('/tmp/hypercube-embedded-');
  data = join(base, 'data');
});

afterEach(async () => {
  for (const child of processes) child.kill('SIGKILL');
  processes = [];
  const left = await findPostmaster(join(data, 'postgres'));
  if (left !== null) await stopPostmaster(join(data, 'postgres'), left);
  await rm(base, { recursive: true, force: true });
  assert.equal(left, null, 'a test left PostgreSQL running');
});

function open(options: { asServer?: boolean; onLost?: (error: Error) => void } = {}): Promise<EmbeddedDatabase> {
  const fail = (error: Error): void => {
    throw error;
  };
  return openEmbedded(data, { asServer: false, onLost: fail, settings: QUICK, ...options });
}

async function query(url: string, text: string): Promise<Record<string, unknown>[]> {
  const client = new pg.Client({ connectionString: url });
  // a lost connection makes its query fail
  client.on('error', () => undefined);
  await client.connect();
  try {
    return (await client.query<Record<string, unknown>>(text)).rows;
  } finally {
    await client.end();
  }
}

/** A process of ours that holds the database. */
async function holdElsewhere(env: NodeJS.ProcessEnv = process.env): Promise<{ child: ChildProcess; url: string }> {
  const program = join(import.meta.dirname, 'embedded-process.ts');
  const child = spawn(process.execPath, [program, data], { env, stdio: ['pipe', 'pipe', 'inherit'] });
  processes.push(child);
  const [line] = await Promise.race([
    once(child.stdout, 'data'),
    once(child, 'exit').then(() => assert.fail('the process ended before it held the database')),
  ]);
  return { child, url: String(line).trim() };
}

async function eventually<T>(ask: () => Promise<T | undefined>): Promise<T> {
  for (;;) {
    const answer = await ask();
    if (answer !== undefined) return answer;
  }
}

async function kill(child: ChildProcess): Promise<void> {
  child.kill('SIGKILL');
  await once(child, 'exit');
}

async function postmasterId(): Promise<number> {
  return Number((await readFile(join(data, 'postgres/postmaster.pid'), 'utf8')).split('\n')[0]);
}

test('a second server on the same folder is refused, and the first goes on', async () => {
  const first = await open({ asServer: true });
  await assert.rejects(open({ asServer: true }), DataFolderInUse);
  assert.deepEqual(await query(first.url, 'select 1 as one'), [{ one: 1 }]);
  await first.close();
  const later = await open({ asServer: true });
  await later.close();
});

test('PostgreSQL outlives a killed server, and the next one adopts it with everything in it', async () => {
  const { child, url } = await holdElsewhere();
  await query(url, 'create table kept (n integer)');
  await query(url, 'insert into kept values (7)');
  const before = await postmasterId();
  await kill(child);
  const adopted = await open({ asServer: true });
  assert.equal(await postmasterId(), before);
  assert.deepEqual(await query(adopted.url, 'select n from kept'), [{ n: 7 }]);
  await adopted.close();
  assert.equal(isAlive(before), false);
});

test('PostgreSQL runs until the last process leaves, and nothing stays behind', async () => {
  const server = await open({ asServer: true });
  const postmaster = await postmasterId();
  const { child } = await holdElsewhere();
  await server.close();
  assert.equal(isAlive(postmaster), true);
  child.stdin?.end();
  assert.deepEqual(await once(child, 'exit'), [0, null]);
  assert.equal(isAlive(postmaster), false);
  assert.deepEqual(await readdir(join(data, 'postgres.socket')), []);
});

test('processes that make the database at once all get the same one', async () => {
  const holders = await Promise.all([holdElsewhere(), holdElsewhere(), holdElsewhere()]);
  assert.equal(new Set(holders.map(({ url }) => url)).size, 1);
  for (const { child } of holders) child.stdin?.end();
  for (const { child } of holders) {
    if (child.exitCode === null) await once(child, 'exit');
    assert.equal(child.exitCode, 0);
  }
  const left = (await readdir(data)).filter((name) => name.startsWith('postgres.new'));
  assert.deepEqual(left, []);
});

test('a database that was being made when the process was killed is made again', async () => {
  const gone = spawn(process.execPath, ['--version'], { stdio: 'ignore' });
  await once(gone, 'exit');
  const unfinished = join(data, `postgres.new-${gone.pid}`);
  await mkdir(unfinished, { recursive: true });
  await writeFile(join(unfinished, 'PG_VERSION'), '18\n');
  const embedded = await open();
  assert.deepEqual(await query(embedded.url, 'select 1 as one'), [{ one: 1 }]);
  assert.equal(existsSync(unfinished), false);
  await embedded.close();
});

test('a process file that a crash left, whose number another program has now, does not hinder the start', async () => {
  const first = await open();
  await first.close();
  const file = join(data, 'postgres/postmaster.pid');
  await writeFile(
    file,
    `${process.pid}\n${join(data, 'postgres')}\n0\n5432\n${join(data, 'postgres.socket')}\n\n\nready\n`,
  );
  await writeFile(join(data, 'postgres.socket/.s.PGSQL.5432.lock'), `${process.pid}\n`);
  const again = await open();
  assert.deepEqual(await query(again.url, 'select 1 as one'), [{ one: 1 }]);
  await again.close();
});

test('after a kill of PostgreSQL nothing is started as long as one of its sessions is still at work', async () => {
  const { child, url } = await holdElsewhere();
  await query(url, 'create table busy (n integer)');
  // Reads the clock for two seconds; PostgreSQL's own waiting would notice that the postmaster is gone.
  const session = Promise.allSettled([
    query(url, `do $$ begin while clock_timestamp() < now() + interval '2 s' loop end loop; end $$`),
  ]);
  const busy = await eventually(async () => {
    const rows = await query(
      url,
      `select pid from pg_stat_activity where query like 'do $$ begin%' and state = 'active'`,
    );
    return rows[0]?.pid;
  });
  process.kill(await postmasterId(), 'SIGKILL');
  await kill(child);
  const next = await open();
  assert.equal(isAlive(Number(busy)), false, 'two never write to one cluster');
  assert.deepEqual(await query(next.url, 'select n from busy'), []);
  await session;
  await next.close();
});

test('whoever needs PostgreSQL is told when it goes', async () => {
  const lost = Promise.withResolvers<Error>();
  const embedded = await open({ onLost: lost.resolve });
  process.kill(await postmasterId(), 'SIGQUIT');
  assert.ok((await lost.promise) instanceof DatabaseError);
  await embedded.close();
});

test('the data of another version of PostgreSQL is not touched', async () => {
  await mkdir(join(data, 'postgres'), { recursive: true });
  await writeFile(join(data, 'postgres/PG_VERSION'), '16\n');
  await assert.rejects(open(), /made by PostgreSQL 16/);
});

test('a start that PostgreSQL refuses is told with its own words', async () => {
  const first = await open();
  await first.close();
  const wrong = { asServer: false, onLost: () => undefined, settings: { shared_buffers: 'plenty' } };
  await assert.rejects(openEmbedded(data, wrong), /invalid value for parameter "shared_buffers"/);
});

test('a folder with a long path has its socket elsewhere, open to nobody else', async () => {
  data = join(base, 'long'.repeat(30));
  const embedded = await open();
  const socketFolder = new URL(embedded.url).searchParams.get('host') ?? '';
  assert.ok(!socketFolder.startsWith(data));
  assert.equal((await stat(socketFolder)).mode & 0o777, 0o700);
  await embedded.close();
  assert.equal(existsSync(socketFolder), false);
});

test('root without user namespaces runs PostgreSQL as nobody, and the other way round', {
  skip: process.getuid?.() !== 0 && 'only root changes users',
}, async () => {
  await assert.rejects(holdElsewhere({ ...process.env, PATH: '/nonexistent' }));
  await chmod(base, 0o755);
  const { child, url } = await holdElsewhere({ ...process.env, PATH: '/nonexistent' });
  await query(url, 'create table kept (n integer)');
  assert.equal((await stat(join(data, 'postgres'))).uid, NOBODY);
  child.stdin?.end();
  await once(child, 'exit');
  const embedded = await open();
  assert.deepEqual(await query(embedded.url, 'select n from kept'), []);
  await embedded.close();
});
