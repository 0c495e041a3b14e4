/**
 * The least that does the same work: Fastify handlers that run the server's own SQL and send the rows as they are, without
 * negotiation, representations, links, validation or access to anything but what the statement itself decides.
 */
import { createHash } from 'node:crypto';
import { createReadStream, createWriteStream } from 'node:fs';
import { mkdir, open, rename, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { Transform } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { crc32 } from 'node:zlib';
import multipart from '@fastify/multipart';
import fastify from 'fastify';
import { sql } from 'kysely';
import { ANONYMOUS, type Caller } from '../src/access/caller.ts';
import { changeFeed, listedFeeds } from '../src/access/feeds.ts';
import { BY_TOKEN } from '../src/accounts/authentication.ts';
import { user } from '../src/accounts/resources.ts';
import { hashToken } from '../src/accounts/tokens.ts';
import { createDatabase, createPool } from '../src/database/database.ts';
import { feed } from '../src/feeds/resources.ts';
import { userFile } from '../src/files/resources.ts';
import { ownFiles, USER_FILE_ORDER } from '../src/files/routes.ts';
import { ItemSelection, ListSelection } from '../src/hypermedia/selection.ts';
import { verifyPassword } from '../src/passwords.ts';
import { plugin } from '../src/plugins/resources.ts';
import { PLUGIN_ORDER } from '../src/plugins/routes.ts';

const PAGE = { limit: 10, offset: 0 };
const [url = '', directory = ''] = process.argv.slice(2);
const pool = createPool({ connectionString: url }, 10, (error) => console.error(error));
const database = createDatabase(pool);
const untyped = database.withTables<never>();

async function callerOf(header: string | undefined): Promise<Caller> {
  const { rows } = await pool.query<{ id: number; username: string }>({
    ...BY_TOKEN,
    values: [hashToken((header ?? '').slice(6))],
  });
  const [account] = rows;
  if (!account) throw new Error('no such token');
  return { ...ANONYMOUS, role: 'user', id: account.id, username: account.username, credentials: 'token' };
}

const app = fastify({ routerOptions: { ignoreTrailingSlash: true } });
await app.register(multipart, { limits: { fileSize: Number.POSITIVE_INFINITY } });

app.post<{ Body: { username: string; password: string } }>('/token', async ({ body }) => {
  const account = await database
    .selectFrom('account')
    .select(['id', 'password_hash'])
    .where('username', '=', body.username)
    .executeTakeFirstOrThrow();
  if (!(await verifyPassword(body.password, account.password_hash))) throw new Error('wrong password');
  return database.selectFrom('api_token').select('id').where('account_id', '=', account.id).executeTakeFirstOrThrow();
});

const oneUser = new ItemSelection(untyped, user, null);
app.get<{ Params: { id: string } }>('/users/:id', async ({ headers, params }) =>
  oneUser.find(pool, await callerOf(headers.authorization), Number(params.id)),
);

const plugins = new ListSelection(untyped, { of: plugin, order: PLUGIN_ORDER });
app.get('/plugins', async ({ headers }) => plugins.find(pool, await callerOf(headers.authorization), {}, PAGE));

const feeds = new ListSelection(untyped, {
  of: feed,
  where: ({ caller }) => listedFeeds('f', caller),
  order: sql`f.creation_date desc, f.id desc`,
});
app.get('/feeds', async ({ headers }) => feeds.find(pool, await callerOf(headers.authorization), {}, PAGE));

const files = new ListSelection(untyped, {
  of: userFile,
  where: ({ caller }) => ownFiles(caller),
  order: USER_FILE_ORDER,
});
app.get('/files', async ({ headers }) => files.find(pool, await callerOf(headers.authorization), {}, PAGE));

const oneFeed = new ItemSelection(untyped, feed, changeFeed);
app.put<{ Params: { id: string }; Body: { name: string } }>('/feeds/:id', async ({ headers, params, body }) => {
  const caller = await callerOf(headers.authorization);
  const id = Number(params.id);
  await oneFeed.find(pool, caller, id);
  await database.transaction().execute(async (transaction) => {
    await transaction
      .selectFrom('feed')
      .select(['name', 'public', 'folder_id'])
      .where('id', '=', id)
      .forUpdate()
      .executeTakeFirstOrThrow();
    await transaction.updateTable('feed').set({ name: body.name }).where('id', '=', id).execute();
    await transaction.updateTable('feed').set({ modification_date: sql<string>`now()` }).where('id', '=', id).execute();
  });
  return oneFeed.find(pool, caller, id);
});

app.post('/upload', async (request) => {
  const part = await request.file();
  if (!part) throw new Error('no file');
  const sha = createHash('sha256');
  let crc = 0;
  const hashing = new Transform({
    transform(chunk: Buffer, _encoding, done) {
      sha.update(chunk);
      crc = crc32(chunk, crc);
      done(null, chunk);
    },
  });
  await mkdir(directory, { recursive: true });
  const draft = join(directory, 'upload.draft');
  await pipeline(part.file, hashing, createWriteStream(draft));
  const handle = await open(draft);
  await handle.datasync();
  await handle.close();
  await rename(draft, join(directory, 'upload'));
  return { sha256: sha.digest('hex'), crc };
});

app.get('/download', async (_request, reply) => {
  const file = join(directory, 'upload');
  const { size } = await stat(file);
  return reply.header('content-length', size).type('application/octet-stream').send(createReadStream(file));
});

const address = await app.listen({ host: '127.0.0.1', port: 0 });
console.error(address);
