/**
 * Every change of an instance's status: one guarded update in the transaction of what follows from it.
 */
import { type RawBuilder, sql } from 'kysely';
import type { Transaction } from '../database/database.ts';
import { settleEnded } from './ending.ts';
import { isFinal, NEXT, type Status, statusFromParents } from './status.ts';

type Moment = RawBuilder<string>;
export const NOW: Moment = sql<string>`now()`;

/** Columns that change together with the status. */
export interface Changes {
  readonly start_date?: Moment;
  readonly end_date?: Moment;
  readonly phase_started_at?: Moment | null;
  readonly submission_failures?: number;
  readonly resubmissions?: number;
  readonly admitted?: boolean;
  readonly watched_by?: number | null;
  readonly pushed?: boolean;
  readonly pulled?: boolean;
  readonly raw?: string;
  readonly job_status?: string;
  readonly job_logs?: string;
  readonly size_bytes?: number;
  readonly error_code?: string;
}

/**
 * The status that an instance is created with. Enqueue `advance` for it in the same transaction, whatever the status: its
 * parents may end meanwhile.
 */
export async function initialStatus(
  transaction: Transaction,
  parentIds: readonly number[],
  requiresCopyJob: boolean,
): Promise<'cancelled' | 'waiting' | 'copying' | 'scheduled'> {
  if (parentIds.length === 0) return statusFromParents([], requiresCopyJob);
  const parents = await transaction
    .selectFrom('plugin_instance')
    .select(sql<Status>`status`.as('status'))
    .where('id', 'in', parentIds)
    .execute();
  return statusFromParents(
    parents.map(({ status }) => status),
    requiresCopyJob,
  );
}

/**
 * Moves an instance from the status that the caller saw to another. False, and nothing is changed, when it has left that
 * status meanwhile. An end reaches all descendants, and whoever waited is told.
 */
export async function moveTo(
  transaction: Transaction,
  id: number,
  from: Status,
  to: Status,
  changes: Changes = {},
): Promise<boolean> {
  if (from !== to && !NEXT[from].includes(to)) throw new Error(`An instance cannot go from ${from} to ${to}.`);
  const moved = await transaction
    .updateTable('plugin_instance')
    .set({ ...changes, status: to })
    .where('id', '=', id)
    .where('status', '=', from)
    .executeTakeFirst();
  if (moved.numUpdatedRows === 0n) return false;
  if (isFinal(to)) await settleEnded(transaction, [{ id, from, to }]);
  if (to === 'cancelled' || to === 'finishedWithError') await cancelTree(transaction, id);
  return true;
}

/** Cancels an instance, all that descends from it and all that joins one of them, as far as they are active. Answers their ids. */
export async function cancelTree(transaction: Transaction, instanceId: number): Promise<number[]> {
  return cancelWhere(
    transaction,
    sql`with recursive tree(id) as (
      select ${instanceId}::bigint
      union
      select child.plugin_instance_id from plugin_instance_parent child join tree on child.parent_id = tree.id
    ) select id from tree`,
  );
}

/** Cancels all active instances of a feed and answers their ids. */
export async function cancelFeed(transaction: Transaction, feedId: number): Promise<number[]> {
  return cancelWhere(transaction, sql`select id from plugin_instance where feed_id = ${feedId}`);
}

async function cancelWhere(transaction: Transaction, ids: RawBuilder<unknown>): Promise<number[]> {
  // Rows are locked by ascending id, parents before children, so that two who cancel at once wait for each other in order.
  const { rows } = await sql<{ id: number; from: Status }>`
    with chosen as (select id, status from plugin_instance where id in (${ids}) and active order by id for no key update)
    update plugin_instance set status = 'cancelled' from chosen
    where plugin_instance.id = chosen.id
    returning plugin_instance.id, chosen.status as from`.execute(transaction);
  await settleEnded(
    transaction,
    rows.map(({ id, from }) => ({ id, from, to: 'cancelled' })),
  );
  return rows.map(({ id }) => id);
}
