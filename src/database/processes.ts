/**
 * Which processes of the server are alive.
 *
 * Each inserts a row and holds the advisory lock of its id in a session of its own; PostgreSQL frees the lock when the process
 * vanishes, however it does. What a dead process left (locked jobs, storage intents) is taken over by whoever finds it.
 */
import { EventEmitter } from 'node:events';
import { sql } from 'kysely';
import type { Pool, PoolClient } from 'pg';
import type { Database, Queries } from './database.ts';

/** First half of the advisory locks' keys; any number that no other program uses here. */
const LOCK_SPACE = 7_201_904;

/** This process as the others see it. Emits `lost` when its session breaks: others may take its work over from then on. */
export class ServerProcess extends EventEmitter<{ lost: [Error] }> {
  readonly id: number;
  readonly #client: PoolClient;
  #state: 'alive' | 'lost' | 'released' = 'alive';

  private constructor(id: number, client: PoolClient) {
    super();
    this.id = id;
    this.#client = client;
    client.on('error', (error) => {
      if (this.#state !== 'alive') return;
      this.#state = 'lost';
      this.emit('lost', error);
    });
  }

  /** Row and lock come into being together, so that nobody sees the row of a living process without its lock. */
  static async register(pool: Pool): Promise<ServerProcess> {
    const client = await pool.connect();
    try {
      await client.query('begin');
      const { rows } = await client.query<{ id: number }>('insert into server_process default values returning id');
      const id = rows[0]?.id ?? 0;
      await client.query('select pg_advisory_lock($1, $2)', [LOCK_SPACE, id]);
      await client.query('commit');
      return new ServerProcess(id, client);
    } catch (error) {
      client.release(true);
      throw error;
    }
  }

  /** Which workers of the job queue belong to this process. */
  async recordWorkers(workerIds: readonly string[]): Promise<void> {
    await this.#client.query('update server_process set worker_ids = $2 where id = $1', [this.id, workerIds]);
  }

  /** Leaves nothing for others to take over; after a loss they do. */
  async release(): Promise<void> {
    const lost = this.#state === 'lost';
    this.#state = 'released';
    try {
      if (!lost) await this.#client.query('delete from server_process where id = $1', [this.id]);
    } finally {
      this.#client.release(true);
    }
  }
}

export interface DeadProcess {
  readonly id: number;
  readonly workerIds: readonly string[];
}

/** Processes whose lock nobody holds. */
export async function findDeadProcesses(database: Database): Promise<readonly DeadProcess[]> {
  const rows = await database
    .selectFrom('server_process as p')
    .select(['p.id', 'p.worker_ids'])
    .where(
      sql<boolean>`not exists (select from pg_locks l where l.locktype = 'advisory' and l.granted
        and l.database = (select oid from pg_database where datname = current_database())
        and l.classid = ${LOCK_SPACE}::integer::oid and l.objid = p.id::integer::oid)`,
    )
    .execute();
  return rows.map((row) => ({ id: row.id, workerIds: row.worker_ids }));
}

/** Call it when all that the process left has been taken over. */
export async function forgetProcess(database: Queries, id: number): Promise<void> {
  await database.deleteFrom('server_process').where('id', '=', id).execute();
}
