/** What follows when instances end, in the transaction of the end itself. */
import { sql } from 'kysely';
import { isLimited } from '../compute/registry.ts';
import type { Transaction } from '../database/database.ts';
import { enqueue, enqueueAdvance } from '../database/queue.ts';
import type { FinalStatus, Status } from './status.ts';

export interface Ended {
  readonly id: number;
  readonly from: Status;
  readonly to: FinalStatus;
}

/** Statuses in which a compute resource knows nothing of the instance yet. */
const UNKNOWN_TO_RESOURCE: readonly Status[] = ['created', 'waiting'];

/**
 * Wakes the children of those that succeeded, ends the tokens that programs were given, and has the compute resource freed of
 * what it holds. (Children of those that failed are cancelled by the caller.)
 */
export async function settleEnded(transaction: Transaction, ended: readonly Ended[]): Promise<void> {
  await wakeChildren(
    transaction,
    ended.filter(({ to }) => to === 'finishedSuccessfully'),
  );
  const known = ended.filter(({ from }) => !UNKNOWN_TO_RESOURCE.includes(from)).map(({ id }) => id);
  if (known.length === 0) return;
  await transaction.deleteFrom('api_token').where('plugin_instance_id', 'in', known).execute();
  await freeSlots(transaction, known);
  await scheduleCleanUp(transaction, known);
}

async function wakeChildren(transaction: Transaction, succeeded: readonly Ended[]): Promise<void> {
  if (succeeded.length === 0) return;
  const children = await transaction
    .selectFrom('plugin_instance_parent')
    .innerJoin('plugin_instance', 'plugin_instance.id', 'plugin_instance_parent.plugin_instance_id')
    .select('plugin_instance.id')
    .distinct()
    .where(
      'parent_id',
      'in',
      succeeded.map(({ id }) => id),
    )
    .where('status', '=', 'waiting')
    .orderBy('plugin_instance.id')
    .execute();
  await enqueueAdvance(
    transaction,
    children.map(({ id }) => id),
  );
}

/** Has the slots given away that instances had, or stood next in line for, on compute resources with few of them. */
export async function freeSlots(transaction: Transaction, instanceIds: readonly number[]): Promise<void> {
  const resources = await transaction
    .selectFrom('plugin_instance')
    .innerJoin('compute_resource', 'compute_resource.id', 'plugin_instance.compute_resource_id')
    .select(['compute_resource.id', 'compute_url'])
    .distinct()
    .where('plugin_instance.id', 'in', instanceIds)
    .execute();
  for (const { id, compute_url: url } of resources) {
    if (isLimited(url)) await enqueue(transaction, 'admit', { computeResourceId: id });
  }
}

async function scheduleCleanUp(transaction: Transaction, instanceIds: readonly number[]): Promise<void> {
  const { rows } = await sql<{ id: number }>`
    insert into compute_cleanup (compute_resource_id, job_id, plugin_instance_id)
    select compute_resource_id, job_id_prefix || plugin_instance.id, plugin_instance.id
    from plugin_instance, chris_instance where plugin_instance.id = any(${[...instanceIds]}::bigint[])
    on conflict (plugin_instance_id) do nothing
    returning id`.execute(transaction);
  for (const { id } of rows) await enqueue(transaction, 'cleanUp', { cleanupId: id });
}
