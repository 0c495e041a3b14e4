/** The real HTTP server and worker on a real database; plugins are shell scripts that run as real processes. */
import { existsSync, readFileSync } from 'node:fs';
import { chmod, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { setTimeout as pause } from 'node:timers/promises';
import { type Selectable, sql } from 'kysely';
import { prepareAdministrator } from '../../src/commands/first-administrator.ts';
import { type Config, loadConfig } from '../../src/config.ts';
import type { ConnectionOptions } from '../../src/database/database.ts';
import type { PluginInstance } from '../../src/database/generated.ts';
import { findDeadProcesses } from '../../src/database/processes.ts';
import { enqueueAdvance } from '../../src/database/queue.ts';
import { ensureFolder, insertFile } from '../../src/files/tree.ts';
import { loadInstance } from '../../src/instances/instance.ts';
import { STEPS } from '../../src/jobs/advance.ts';
import type { JobContext } from '../../src/jobs/context.ts';
import { Engines } from '../../src/jobs/engines.ts';
import { Watchers } from '../../src/jobs/watchers.ts';
import { startWorker, type Worker } from '../../src/jobs/worker.ts';
import { ensureBuiltinPlugins } from '../../src/plugins/builtin.ts';
import { parseDescriptor } from '../../src/plugins/descriptor.ts';
import { insertPlugin } from '../../src/plugins/registration.ts';
import { buildServer } from '../../src/server.ts';
import { type OpenServices, openServices } from '../../src/services.ts';
import { type Answer, clientOf, type Request, signUp } from '../helpers/client.ts';
import { silentLog, temporaryDatabase } from '../helpers/postgres.ts';
import type { Credentials } from '../helpers/server.ts';

export interface User extends Credentials {
  readonly id: number;
}

export interface Plugin {
  readonly id: number;
  readonly instances: string;
}

type Fields = Readonly<Record<string, unknown>>;

const PASSWORD = 'administrator-1';
const PATIENCE_SECONDS = 60;

/** Puts the folders that a plugin is given into `$in` and `$out`, whatever comes before them. */
const PROLOGUE = '#!/bin/sh\nset -e\nfor word; do in=$out; out=$word; done\n';

export class Bench {
  readonly #close: () => Promise<void>;
  readonly services: OpenServices;
  readonly #connection: ConnectionOptions;
  readonly request: Request;
  readonly resourceId: number;
  #worker: Worker | null = null;

  private constructor(
    services: OpenServices,
    connection: ConnectionOptions,
    request: Request,
    resourceId: number,
    close: () => Promise<void>,
  ) {
    this.services = services;
    this.#connection = connection;
    this.request = request;
    this.resourceId = resourceId;
    this.#close = close;
  }

  /** @param settings further `HYPERCUBE_…` variables */
  static async open(settings: Readonly<Record<string, string>> = {}): Promise<Bench> {
    const { database, connection, close } = await temporaryDatabase();
    const data = await mkdtemp('/tmp/hypercube-jobs-');
    const config: Config = loadConfig({
      HYPERCUBE_DATA: data,
      HYPERCUBE_ADMIN_PASSWORD: PASSWORD,
      HYPERCUBE_PROCESS_ENGINE: 'true',
      HYPERCUBE_JOB_SLOTS: '4',
      ...settings,
    });
    const services = await openServices(config, connection, silentLog);
    await prepareAdministrator(services);
    await ensureBuiltinPlugins(services);
    const app = await buildServer(services);
    const request = clientOf({ url: await app.listen({ host: '127.0.0.1', port: 0 }) });
    await mkdir(join(data, 'programs'));
    const { id } = await database
      .insertInto('compute_resource')
      .values({ name: 'here', compute_url: `process:${join(data, 'programs')}`, described_at: sql`now()` })
      .returning('id')
      .executeTakeFirstOrThrow();
    return new Bench(services, connection, request, id, async () => {
      await app.close();
      await services.close();
      await close();
      await rm(data, { recursive: true, force: true });
    });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stopWorker();
    await this.#close();
  }

  async startWorker(): Promise<void> {
    this.#worker = await startWorker(this.services);
  }

  async stopWorker(): Promise<void> {
    await this.#worker?.stop();
    this.#worker = null;
  }

  /** For steps that a test takes by hand, as a process that is cut off in between would. */
  context(): JobContext {
    return { services: this.services, engines: new Engines(this.services), watchers: new Watchers(() => undefined) };
  }

  /** Further services on the same database and data, as another process has them. */
  anotherProcess(): Promise<OpenServices> {
    return openServices(this.services.config, this.#connection, silentLog);
  }

  /** Ends another process as `kill -9` does: its sessions vanish, its row stays. */
  async terminate(other: OpenServices): Promise<void> {
    other.process.on('lost', () => undefined);
    await this.services.pool.query(
      `select pg_terminate_backend(pid) from pg_locks where locktype = 'advisory' and objid = $1::bigint::oid
        and pid <> pg_backend_pid() and database = (select oid from pg_database where datname = current_database())`,
      [other.process.id],
    );
    await eventually(
      async () => (await findDeadProcesses(this.services.database)).length > 0 || null,
      'the process to die',
    );
  }

  user(word = 'user'): Promise<User> {
    return signUp(this.request, word);
  }

  /** Registers a plugin that runs a shell script with `$in` and `$out`. */
  async plugin(
    name: string,
    type: 'fs' | 'ds' | 'ts',
    script: string,
    parameters: readonly Fields[] = [],
  ): Promise<Plugin> {
    const folder = join(this.services.config.data, 'programs', name);
    await mkdir(folder, { recursive: true });
    await writeFile(join(folder, 'run'), `${PROLOGUE}${script}\n`);
    await chmod(join(folder, 'run'), 0o755);
    const descriptor = parseDescriptor({
      name,
      type,
      version: '1.0',
      dock_image: `example/${name}`,
      execshell: 'sh',
      selfpath: '/bin',
      selfexec: 'run',
      parameters,
    });
    const id = await this.services.database
      .transaction()
      .execute((transaction) => insertPlugin(transaction, descriptor, [this.resourceId], null));
    return { id, instances: `/api/v1/plugins/${id}/instances/` };
  }

  /** The newest version of a plugin that is registered from the start. */
  async builtin(name: string): Promise<Plugin> {
    const { id } = await this.services.database
      .selectFrom('plugin')
      .innerJoin('plugin_meta', 'plugin_meta.id', 'plugin.meta_id')
      .select('plugin.id')
      .where('plugin_meta.name', '=', name)
      .orderBy('plugin.version', 'desc')
      .executeTakeFirstOrThrow();
    return { id, instances: `/api/v1/plugins/${id}/instances/` };
  }

  /** Starts an instance and answers its id. */
  async start(plugin: Plugin, as: Credentials, json: Fields = {}): Promise<number> {
    const answer = await this.request('POST', plugin.instances, { as, json });
    if (answer.status !== 201) throw new Error(`instance: ${answer.status} ${answer.text}`);
    return Number(answer.json.id);
  }

  cancel(id: number, as: Credentials): Promise<Answer> {
    return this.request('PUT', `/api/v1/plugins/instances/${id}/`, { as, json: { status: 'cancelled' } });
  }

  instance(id: number): Promise<Selectable<PluginInstance> | undefined> {
    return this.services.database.selectFrom('plugin_instance').selectAll().where('id', '=', id).executeTakeFirst();
  }

  async status(id: number): Promise<string> {
    return (await this.instance(id))?.status ?? 'gone';
  }

  /** Waits until instances have a status of those given (by default: have ended) and answers the rows. */
  async ended(
    id: number,
    statuses = ['finishedSuccessfully', 'finishedWithError', 'cancelled'],
  ): Promise<Selectable<PluginInstance>> {
    return eventually(
      async () => {
        const row = await this.instance(id);
        return row !== undefined && statuses.includes(row.status) ? row : null;
      },
      `instance ${id} to be ${statuses.join(' or ')}`,
    );
  }

  /** Files and link files below the output folder: their size, or where they point. */
  async outputs(id: number): Promise<Record<string, number | string>> {
    const { rows } = await sql<{ path: string; value: number | string }>`
      with top as (select f.path from plugin_instance i join folder f on f.id = i.output_folder_id where i.id = ${id}),
        inside as (select folder.* from folder, top where folder.path = top.path or folder.path like top.path || '/%')
      select substr(inside.path || '/' || entry.name, length(top.path) + 2) as path, entry.value from top, (
        select folder_id, name, to_jsonb(size_bytes) as value from file
        union all select folder_id, name, to_jsonb(target_path) from link_file
      ) entry join inside on inside.id = entry.folder_id order by 1`.execute(this.services.database);
    return Object.fromEntries(rows.map(({ path, value }) => [path, value]));
  }

  /** Stores a file of a user as an upload does. */
  async put(user: User, name: string, text: string): Promise<string> {
    const { database, storage } = this.services;
    const path = `home/${user.username}/uploads/${name}`;
    const incoming = await storage.receive(Readable.from([Buffer.from(text)]));
    await storage.place(incoming, path);
    await database.transaction().execute(async (transaction) => {
      const slash = path.lastIndexOf('/');
      const folder = await ensureFolder(transaction, path.slice(0, slash), user.id);
      await insertFile(transaction, {
        ...incoming,
        folderId: folder.id,
        name: path.slice(slash + 1),
        ownerId: user.id,
      });
    });
    return path;
  }

  async outputPath(id: number): Promise<string> {
    const { path } = await this.services.database
      .selectFrom('plugin_instance')
      .innerJoin('folder', 'folder.id', 'plugin_instance.output_folder_id')
      .select('path')
      .where('plugin_instance.id', '=', id)
      .executeTakeFirstOrThrow();
    return path;
  }

  /** Where a storage path lies on disk. */
  local(path: string): string {
    return this.services.storage.localPath(path);
  }

  exists(path: string): boolean {
    return existsSync(this.local(path));
  }

  read(path: string): string {
    return readFileSync(this.local(path), 'utf8');
  }

  async touch(path: string): Promise<void> {
    await writeFile(this.local(path), '');
  }

  /** Waits until something holds. */
  async eventually(holds: () => boolean | Promise<boolean>): Promise<void> {
    await eventually(async () => (await holds()) || null, 'what the test expects');
  }

  /** Process id that a program has written to `pid` in its output folder. */
  async pid(outputPath: string): Promise<number> {
    const file = `${outputPath}/pid`;
    await this.eventually(() => this.exists(file) && this.read(file).endsWith('\n'));
    return Number(this.read(file));
  }

  isRunning(pid: number): boolean {
    return existsSync(`/proc/${pid}`) && !/^State:\s*Z/m.test(readFileSync(`/proc/${pid}/status`, 'utf8'));
  }

  removeProgram(name: string): Promise<void> {
    return rm(join(this.services.config.data, 'programs', name), { recursive: true });
  }

  /** Has the worker look at an instance. */
  advance(id: number): Promise<void> {
    return enqueueAdvance(this.services.database, [id]);
  }

  /** Takes an instance by hand, without a worker, until it has a status. */
  async advanceUntil(context: JobContext, id: number, status: string): Promise<void> {
    await eventually(async () => {
      const row = await loadInstance(this.services.database, id);
      if (row === null) throw new Error(`instance ${id} is gone`);
      if (row.status === status) return true;
      await STEPS[row.status]?.(context, row);
      return null;
    }, `instance ${id} to be ${status}`);
  }

  async execute(statement: string): Promise<void> {
    await this.services.pool.query(statement);
  }

  /** Makes the jobs of a task that wait for another try run at once, until there are none. */
  async hurry(task: string): Promise<void> {
    await eventually(async () => {
      const { rows } = await this.services.pool.query(
        `update graphile_worker._private_jobs set run_at = now() where locked_at is null and attempts < max_attempts
          and task_id = (select id from graphile_worker._private_tasks where identifier = $1) returning id`,
        [task],
      );
      const left = await this.services.pool.query(
        'select from graphile_worker.jobs where task_identifier = $1 and attempts < max_attempts',
        [task],
      );
      return (rows.length === 0 && left.rows.length === 0) || null;
    }, `the jobs of ${task}`);
  }

  /** Waits until nothing is left to be cleaned up. */
  async cleanedUp(): Promise<void> {
    await eventually(async () => {
      const left = await this.services.database.selectFrom('compute_cleanup').select('id').execute();
      return left.length === 0 || null;
    }, 'all clean-ups');
  }
}

/** Asks again until there is an answer. */
export async function eventually<T>(ask: () => Promise<T | null>, what: string): Promise<T> {
  const deadline = Date.now() + PATIENCE_SECONDS * 1000;
  for (;;) {
    const answer = await ask();
    if (answer !== null) return answer;
    if (Date.now() > deadline) throw new Error(`waited ${PATIENCE_SECONDS} s for ${what}`);
    await pause(20);
  }
}
