/**
 * One at a time for each instance: two jobs for it may be in the queue's hands at once, since whoever enqueues while one runs
 * adds another, and since another process may have taken it.
 */
import type { Pool, PoolClient } from 'pg';

/** First half of the advisory locks' keys; the second is the instance's id. Chosen at random, other than those of `database/`. */
const LOCK_SPACE = 1_213_810_101;

export type Turn = 'taken' | 'left to this process' | 'held by another process';

export class Turns {
  readonly #pool: Pool;
  /** Instances at work in this process; true: somebody came meanwhile, so that the work is done again. */
  readonly #running = new Map<number, boolean>();
  #client: Promise<PoolClient> | null = null;
  /** The session that has not been given up. */
  #held: PoolClient | null = null;
  /** The last statement on the session, which takes one at a time. */
  #last: Promise<unknown> = Promise.resolve();

  constructor(pool: Pool) {
    this.#pool = pool;
  }

  /**
   * Does the work unless it is being done. When this process is at it, it does it once more afterwards, and the caller need
   * not wait; when another is, the caller has to come again.
   */
  async take(instanceId: number, work: () => Promise<void>): Promise<Turn> {
    if (this.#running.has(instanceId)) {
      this.#running.set(instanceId, true);
      return 'left to this process';
    }
    this.#running.set(instanceId, false);
    try {
      if (!(await this.#lock(instanceId))) {
        this.#running.delete(instanceId);
        return 'held by another process';
      }
    } catch (error) {
      this.#running.delete(instanceId);
      throw error;
    }
    try {
      do {
        this.#running.set(instanceId, false);
        await work();
      } while (this.#running.get(instanceId));
    } finally {
      // Before anything is waited for, so that nobody leaves work here that is not taken up.
      this.#running.delete(instanceId);
      await this.#unlock(instanceId);
    }
    return 'taken';
  }

  /** Ends the session that holds the locks. */
  async close(): Promise<void> {
    const client = await this.#client;
    if (client !== null) this.#drop(client);
  }

  /** Gives a session up, once: an ended one may tell of errors afterwards. */
  #drop(client: PoolClient): void {
    if (this.#held !== client) return;
    this.#held = null;
    this.#client = null;
    client.release(true);
  }

  async #lock(instanceId: number): Promise<boolean> {
    const client = await this.#session();
    return this.#call(client, 'pg_try_advisory_lock', instanceId);
  }

  async #unlock(instanceId: number): Promise<void> {
    // When the session has broken, PostgreSQL has freed the lock with it.
    const client = await this.#client;
    if (client !== null) await this.#call(client, 'pg_advisory_unlock', instanceId);
  }

  #call(client: PoolClient, name: 'pg_try_advisory_lock' | 'pg_advisory_unlock', instanceId: number): Promise<boolean> {
    const query = async (): Promise<boolean> => {
      const { rows } = await client.query<{ done: boolean }>(`select ${name}($1, $2) as done`, [
        LOCK_SPACE,
        instanceId,
      ]);
      return rows[0]?.done ?? false;
    };
    const answer = this.#last.then(query, query);
    this.#last = answer;
    return answer;
  }

  /** One session for all locks of this process, opened again after it broke. */
  #session(): Promise<PoolClient> {
    this.#client ??= this.#connect();
    return this.#client;
  }

  async #connect(): Promise<PoolClient> {
    try {
      const client = await this.#pool.connect();
      this.#held = client;
      client.on('error', () => this.#drop(client));
      return client;
    } catch (error) {
      this.#client = null;
      throw error;
    }
  }
}
