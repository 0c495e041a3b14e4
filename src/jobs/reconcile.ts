/**
 * Looks for what nobody works on: after a start, and from time to time. It is what makes up for processes that vanish between
 * two steps; while all goes well it finds nothing.
 */
import { sql } from 'kysely';
import { sweepExpired } from '../accounts/tokens.ts';
import { isLimited } from '../compute/registry.ts';
import type { Database } from '../database/database.ts';
import { findDeadProcesses, forgetProcess } from '../database/processes.ts';
import { enqueue, enqueueAdvance } from '../database/queue.ts';
import { recoverIntents } from '../storage/intents.ts';
import { admit } from './admission.ts';
import { MOST_ATTEMPTS } from './cleanup.ts';
import type { JobContext } from './context.ts';

export async function reconcile(context: JobContext): Promise<void> {
  await takeOverFromDead(context);
  await unlockUnclaimed(context);
  const limited = await limitedResources(context);
  await resumeInstances(context, limited);
  for (const id of limited) await admit(context.services.database, id, context.services.config.jobSlots);
  await resumeCleanUps(context);
  await describeSilentResources(context);
  await keepOwnWatches(context);
  await sweepExpired(context.services.database);
}

/** Unlocks the jobs of processes that have died, and settles what they left in storage. */
async function takeOverFromDead({ services }: JobContext): Promise<void> {
  const { database, storage, log } = services;
  const dead = await findDeadProcesses(database);
  const ids = dead.map(({ id }) => id);
  await recoverIntents(services, ids);
  if (dead.length === 0) return;
  await unlockJobs(
    database,
    dead.flatMap((process) => process.workerIds),
  );
  const settled = await withoutIntents(database, ids);
  await storage.removeLeftovers(settled);
  for (const id of settled) await forgetProcess(database, id);
  log.info({ processes: ids }, 'took over from server processes that have ended without notice');
}

/** What the others left is tried again; until then their incoming files tell which bytes are theirs. */
async function withoutIntents(database: Database, processIds: readonly number[]): Promise<number[]> {
  const rows = await database
    .selectFrom('storage_intent')
    .select('process_id')
    .where('process_id', 'in', processIds)
    .execute();
  return processIds.filter((id) => !rows.some((row) => row.process_id === id));
}

/** Unlocks the jobs of workers that no process has recorded: it died just after it had taken its first ones. */
async function unlockUnclaimed({ services }: JobContext): Promise<void> {
  const { rows } = await sql<{ locked_by: string }>`
    select distinct j.locked_by from graphile_worker.jobs j
    where j.locked_at < now() - interval '1 minute'
      and not exists (select from server_process p where j.locked_by = any(p.worker_ids))`.execute(services.database);
  if (rows.length > 0)
    await unlockJobs(
      services.database,
      rows.map((row) => row.locked_by),
    );
}

/**
 * A job that was cut off at its last try gets one more, since it could not say that it had failed. One that has lost its key
 * meanwhile is not wanted any more: it was enqueued again while it ran.
 */
async function unlockJobs(database: Database, workerIds: readonly string[]): Promise<void> {
  await database.transaction().execute(async (transaction) => {
    const { rows } = await sql<{ id: number; key: string | null }>`
      select id, key from graphile_worker.jobs
      where locked_by = any(${[...workerIds]}::text[]) and attempts >= max_attempts`.execute(transaction);
    await sql`select graphile_worker.force_unlock_workers(${[...workerIds]}::text[])`.execute(transaction);
    const idsOf = (wanted: boolean) => rows.filter(({ key }) => (key !== null) === wanted).map(({ id }) => id);
    await sql`select graphile_worker.complete_jobs(${idsOf(false)}::bigint[])`.execute(transaction);
    await sql`
      select graphile_worker.reschedule_jobs(array[id], attempts => max_attempts - 1)
      from graphile_worker.jobs where id = any(${idsOf(true)}::bigint[])`.execute(transaction);
  });
}

/**
 * Enqueues active instances that no job is queued for, that no living process waits for, and that wait for nothing else: neither
 * for a parent nor for a slot.
 */
async function resumeInstances({ services, watchers }: JobContext, limited: readonly number[]): Promise<void> {
  const { rows } = await sql<{ id: number }>`
    select i.id from plugin_instance i
    where i.active
      and (i.watched_by is null or i.watched_by = ${services.process.id} and i.id <> all(${watchers.watched()}::bigint[]))
      and not (i.status = 'scheduled' and not i.admitted and i.compute_resource_id = any(${[...limited]}::bigint[]))
      and not (i.status in ('created', 'waiting') and exists (
        select from plugin_instance_parent link join plugin_instance parent on parent.id = link.parent_id
        where link.plugin_instance_id = i.id and parent.active))
      and not exists (
        select from graphile_worker.jobs j where j.key = 'advance:' || i.id
          and (j.locked_at is not null or j.attempts < j.max_attempts))
    order by i.id`.execute(services.database);
  if (rows.length === 0) return;
  services.log.info({ instances: rows.length }, 'resuming plugin instances that nobody worked on');
  await enqueueAdvance(
    services.database,
    rows.map(({ id }) => id),
  );
}

/** Compute resources that only so many jobs run on at once. */
async function limitedResources({ services }: JobContext): Promise<number[]> {
  const resources = await services.database.selectFrom('compute_resource').select(['id', 'compute_url']).execute();
  return resources.filter(({ compute_url: url }) => isLimited(url)).map(({ id }) => id);
}

/** Clean-ups whose job was lost; those that have been given up stay as a record for the operator. */
async function resumeCleanUps({ services }: JobContext): Promise<void> {
  const { rows } = await sql<{ id: number }>`
    select c.id from compute_cleanup c
    where c.attempts <= ${MOST_ATTEMPTS} and not exists (
      select from graphile_worker.jobs j where j.key = 'cleanUp:' || c.id
        and (j.locked_at is not null or j.attempts < j.max_attempts))`.execute(services.database);
  for (const { id } of rows) await enqueue(services.database, 'cleanUp', { cleanupId: id });
}

async function describeSilentResources({ services }: JobContext): Promise<void> {
  const silent = await services.database
    .selectFrom('compute_resource')
    .select('id')
    .where('described_at', 'is', null)
    .execute();
  for (const { id } of silent) {
    await enqueue(services.database, 'describeComputeResource', { computeResourceId: id });
  }
}

/** Stops waiting for instances that have ended, or that another process has taken on. */
async function keepOwnWatches({ services, watchers }: JobContext): Promise<void> {
  const watched = watchers.watched();
  if (watched.length === 0) return;
  const own = await services.database
    .selectFrom('plugin_instance')
    .select('id')
    .where('id', 'in', watched)
    .where('active', '=', true)
    .where('watched_by', '=', services.process.id)
    .execute();
  watchers.keepOnly(new Set(own.map(({ id }) => id)));
}
