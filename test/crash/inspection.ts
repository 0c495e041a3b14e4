/** Looks at the data folder of a running server behind its back: rows, bytes and processes have to agree. */
import assert from 'node:assert/strict';
import { existsSync, readdirSync, readFileSync, readlinkSync, statSync } from 'node:fs';
import { join, relative } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import pg from 'pg';
import { SUPERUSER } from '../../src/database/embedded/cluster.ts';
import { findPostmaster } from '../../src/database/embedded/postmaster.ts';
import type { CrashServer } from './server.ts';
import { sha256Of } from './uploader.ts';

/** Some retries of background work wait for many seconds. */
const SETTLE_SECONDS = 90;

export class Inspection {
  readonly #server: CrashServer;
  readonly #client: pg.Client;

  private constructor(server: CrashServer, client: pg.Client) {
    this.#server = server;
    this.#client = client;
  }

  static async open(server: CrashServer): Promise<Inspection> {
    const postmaster = await findPostmaster(server.clusterFolder);
    assert.ok(postmaster, 'PostgreSQL runs');
    const client = new pg.Client({ host: postmaster.socketFolder, user: SUPERUSER, database: 'hypercube' });
    // A lost connection makes the next query fail.
    client.on('error', () => undefined);
    await client.connect();
    return new Inspection(server, client);
  }

  close(): Promise<void> {
    return this.#client.end();
  }

  /** Waits until nobody has anything left to do. */
  async untilSettled(): Promise<void> {
    const deadline = Date.now() + SETTLE_SECONDS * 1000;
    const query = `select
      (select coalesce(json_agg(i), '[]') from (select id, status, admitted, watched_by, job_status from plugin_instance where active) i) as instances,
      (select coalesce(json_agg(s), '[]') from storage_intent s) as intents,
      (select coalesce(json_agg(c), '[]') from compute_cleanup c) as cleanups,
      (select coalesce(json_agg(f), '[]') from (select path, deletion_status from folder where deletion_status <> 'inactive') f) as deletions,
      (select coalesce(json_agg(j), '[]') from graphile_worker.jobs j) as jobs,
      (select coalesce(json_agg(p.id), '[]') from server_process p where p.id <> (select max(id) from server_process)) as processes`;
    const nothing = { instances: [], intents: [], cleanups: [], deletions: [], jobs: [], processes: [] };
    for (;;) {
      this.#server.requireAlive();
      const { rows } = await this.#client.query<Record<string, unknown>>(query);
      if (JSON.stringify(rows[0]) === JSON.stringify(nothing)) return;
      if (Date.now() > deadline) return assert.deepEqual(rows[0], nothing, `settled within ${SETTLE_SECONDS} s`);
      await pause(100);
    }
  }

  /** Every file has its bytes, all bytes below `home` have a file, and nothing waits outside of the tree. */
  async requireRowsAndBytesToAgree(): Promise<void> {
    const root = join(this.#server.data, 'storage');
    const { rows } = await this.#client.query<{ path: string; size_bytes: string; sha256: Buffer | null }>(
      `select folder.path || '/' || file.name as path, size_bytes, sha256
        from file join folder on folder.id = file.folder_id where storage_key is null`,
    );
    const expected = new Set<string>();
    for (const { path, size_bytes: size, sha256 } of rows) {
      expected.add(path);
      assert.ok(existsSync(join(root, path)), `the file ${path} has bytes`);
      assert.equal(statSync(join(root, path)).size, Number(size), `the size of ${path}`);
      if (sha256) assert.equal(sha256Of(readFileSync(join(root, path))), sha256.toString('hex'), `the hash of ${path}`);
    }
    for (const [path, target] of await this.#outputLinks()) {
      expected.add(path);
      assert.equal(readFileSync(join(root, path), 'utf8'), target, `the link file ${path}`);
    }
    const stored = filesBelow(join(root, 'home')).map((path) => relative(root, path));
    assert.deepEqual(
      stored.filter((path) => !expected.has(path)),
      [],
      'all bytes have a file',
    );
    for (const folder of ['.incoming', '.trash']) {
      assert.deepEqual(filesBelow(join(root, folder)), [], `nothing is left in ${folder}`);
    }
    assert.deepEqual(filesBelow(join(this.#server.data, 'jobs')), [], 'nothing is left of jobs');
  }

  /** The output folder of an instance holds these texts, in rows and in bytes, and nothing else. */
  async requireOutputs(instanceId: number, title: string, expected: Readonly<Record<string, string>>): Promise<void> {
    const { rows } = await this.#client.query<{ path: string; name: string }>(
      `select o.path, substr(f.path || '/' || x.name, length(o.path) + 2) as name
        from plugin_instance i join folder o on o.id = i.output_folder_id
          join folder f on f.path = o.path or starts_with(f.path, o.path || '/')
          join (select folder_id, name from file union all select folder_id, name from link_file) x on x.folder_id = f.id
        where i.id = $1`,
      [instanceId],
    );
    const found = rows.map(({ path, name }) => [
      name,
      readFileSync(join(this.#server.data, 'storage', path, name), 'utf8'),
    ]);
    assert.deepEqual(Object.fromEntries(found), expected, `the outputs of ${title}`);
  }

  /** Beside the server and its database no process works on the data folder any more. */
  requireNoStrayProcesses(): void {
    if (!existsSync('/proc/self/cwd')) return;
    const { data } = this.#server;
    const stray = readdirSync('/proc')
      .filter((name) => /^\d+$/.test(name) && Number(name) !== this.#server.processId)
      .map((name) => ({ name, folder: workingFolder(name), command: commandOf(name) }))
      .filter(({ folder, command }) => `${folder}\n${command}`.includes(`${data}/`))
      .filter(({ folder, command }) => folder !== this.#server.clusterFolder && !command.includes('postgres'));
    assert.deepEqual(stray, [], 'no program of a plugin is left');
  }

  /** Link files that programs of plugins and the server have made in output folders; those of homes have no bytes. */
  async #outputLinks(): Promise<Map<string, string>> {
    const { rows } = await this.#client.query<{ path: string; target_path: string }>(
      `select folder.path || '/' || link_file.name as path, target_path
        from link_file join folder on folder.id = link_file.folder_id where folder.path like 'home/%/feeds/%'`,
    );
    return new Map(rows.map(({ path, target_path: target }) => [path, target]));
  }
}

function filesBelow(folder: string): string[] {
  if (!existsSync(folder)) return [];
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => !entry.isDirectory())
    .map((entry) => join(entry.parentPath, entry.name));
}

function workingFolder(processId: string): string {
  try {
    return readlinkSync(`/proc/${processId}/cwd`);
  } catch {
    return '';
  }
}

function commandOf(processId: string): string {
  try {
    return readFileSync(`/proc/${processId}/cmdline`, 'utf8').replaceAll('\0', ' ');
  } catch {
    return '';
  }
}
