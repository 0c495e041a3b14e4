/**
 * The queue of background work.
 *
 * Terminology
 *   task  a kind of work, by name, with a payload of its own
 *   job   one piece of work in the queue. (Elsewhere a job is one run of a plugin's program; here it is graphile-worker's word)
 *   key   of the jobs with one key only the last one enqueued waits: enqueueing again replaces it. While one runs, another
 *         may be enqueued and will run as well, so whoever changes something and then enqueues is never overlooked
 *
 * A job is enqueued in the transaction of the change that it follows from: both happen, or neither.
 */
import { sql } from 'kysely';
import type { Queries } from './database.ts';

/** The payload of each task. Ids are those of the database. */
export interface Tasks {
  /** Takes a plugin instance as far on as it goes now. */
  advance: { readonly instanceId: number };
  /** Gives the free slots of a compute resource to the instances that wait for one. */
  admit: { readonly computeResourceId: number };
  /** Ends and removes what a compute resource still holds of an ended instance. */
  cleanUp: { readonly cleanupId: number };
  /** Asks a compute resource that has not answered yet who it is. */
  describeComputeResource: { readonly computeResourceId: number };
  deleteInstance: { readonly instanceId: number };
  deleteFeed: { readonly feedId: number };
  deleteFolder: { readonly folderId: number };
  /** Removes the bytes of what a transaction has removed from the tree. */
  removeFromStorage: Record<string, never>;
}

export type TaskName = keyof Tasks;

export interface EnqueueOptions {
  /** Default: the task's name and its id, so that one job for each thing waits. */
  readonly key?: string;
  /** Not before this many seconds from now. Default: at once. */
  readonly delaySeconds?: number;
  /** How often a job that throws is tried in all. Default: of the task. */
  readonly maxAttempts?: number;
}

/** How often a job is tried in all. Pauses grow: 3, 7, 20, 55, 148 s. */
const MAX_ATTEMPTS: Record<TaskName, number> = {
  advance: 6,
  admit: 6,
  cleanUp: 6,
  describeComputeResource: 1,
  deleteInstance: 4,
  deleteFeed: 4,
  deleteFolder: 4,
  removeFromStorage: 25,
};

/** The only member of each payload; null: it has none. */
const ID_NAME: Readonly<Record<TaskName, string | null>> = {
  advance: 'instanceId',
  admit: 'computeResourceId',
  cleanUp: 'cleanupId',
  describeComputeResource: 'computeResourceId',
  deleteInstance: 'instanceId',
  deleteFeed: 'feedId',
  deleteFolder: 'folderId',
  removeFromStorage: null,
};

export class InvalidPayload extends Error {
  override readonly name = 'InvalidPayload';
}

/** Adds a job; workers hear of it as soon as the transaction is committed. */
export async function enqueue<Name extends TaskName>(
  database: Queries,
  task: Name,
  payload: Tasks[Name],
  options: EnqueueOptions = {},
): Promise<void> {
  const id = idOf(task, payload);
  const runAt =
    options.delaySeconds === undefined ? sql`null` : sql`now() + make_interval(secs => ${options.delaySeconds})`;
  await sql`select graphile_worker.add_job(${task}, ${JSON.stringify(payload)}::json,
    job_key => ${options.key ?? keyOf(task, id)}, run_at => ${runAt},
    max_attempts => ${options.maxAttempts ?? MAX_ATTEMPTS[task]})`.execute(database);
}

/** Adds an `advance` job for each instance, in one statement. */
export async function enqueueAdvance(database: Queries, instanceIds: readonly number[]): Promise<void> {
  if (instanceIds.length === 0) return;
  await sql`select graphile_worker.add_job('advance', json_build_object('instanceId', id),
    job_key => 'advance:' || id, max_attempts => ${MAX_ATTEMPTS.advance})
    from unnest(${[...instanceIds]}::bigint[]) as id`.execute(database);
}

/** The key that a job has unless it was given another. */
export function keyOf(task: TaskName, id: number): string {
  return `${task}:${id}`;
}

/** The id in a payload, which a queue shared with another version of the program may have spelled otherwise. @throws {InvalidPayload} */
export function idOf(task: TaskName, payload: unknown): number {
  const name = ID_NAME[task];
  if (name === null) return 0;
  const members = typeof payload === 'object' && payload !== null ? Object.entries(payload) : [];
  const id: unknown = members.find(([key]) => key === name)?.[1];
  if (typeof id !== 'number' || !Number.isSafeInteger(id)) {
    throw new InvalidPayload(`The payload of ${task} must be {"${name}": <integer>}, not ${JSON.stringify(payload)}.`);
  }
  return id;
}
