/**
 * The task `cleanUp`: after the end of an instance, whatever it was, its job is ended and removed from the compute resource,
 * and a cancelled instance loses what lies in its output folder. The record outlives the instance.
 */
import { type RawBuilder, sql } from 'kysely';
import { ComputeError } from '../compute/errors.ts';
import type { Database } from '../database/database.ts';
import { enqueue } from '../database/queue.ts';
import { removeContents } from '../files/tree-removal.ts';
import type { JobContext } from './context.ts';

/** Pauses before a clean-up that failed is tried again: for about a day, in which a service may come back. */
const PAUSES_SECONDS: readonly number[] = [2, 10, 60, 300, 1800, 7200, 28_800, 43_200];

/** A record with more attempts than this has been given up; it stays for the operator. */
export const MOST_ATTEMPTS = PAUSES_SECONDS.length;

interface CleanUp {
  readonly id: number;
  readonly compute_resource_id: number | null;
  readonly job_id: string;
  readonly plugin_instance_id: number;
  readonly attempts: number;
}

/** @returns whether nothing is left to be done */
export async function cleanUp(context: JobContext, cleanupId: number): Promise<boolean> {
  const { database, log } = context.services;
  const record = await database
    .selectFrom('compute_cleanup')
    .select(['id', 'compute_resource_id', 'job_id', 'plugin_instance_id', 'attempts'])
    .where('id', '=', cleanupId)
    .executeTakeFirst();
  if (record === undefined) return true;
  try {
    await removeJob(context, record);
  } catch (error) {
    if (!(error instanceof ComputeError)) throw error;
    await tryLater(context, record, error.message);
    return false;
  }
  await clearOutputOfCancelled(context, record.plugin_instance_id);
  await database.deleteFrom('compute_cleanup').where('id', '=', record.id).execute();
  log.debug({ job: record.job_id }, 'a job was removed from its compute resource');
  return true;
}

/**
 * Removes the jobs of instances that are about to be deleted. Where a compute resource does not answer, the records stay for
 * later, and it is not asked for each of its jobs.
 */
export async function cleanUpNow(context: JobContext, instanceIds: RawBuilder<unknown>): Promise<void> {
  const { rows } = await sql<{ id: number; compute_resource_id: number | null }>`
    select id, compute_resource_id from compute_cleanup
    where plugin_instance_id in (${instanceIds}) order by id`.execute(context.services.database);
  const silent = new Set<number | null>();
  for (const { id, compute_resource_id: resource } of rows) {
    if (!silent.has(resource) && !(await cleanUp(context, id))) silent.add(resource);
  }
}

async function removeJob(context: JobContext, record: CleanUp): Promise<void> {
  context.watchers.forget(record.plugin_instance_id);
  if (record.compute_resource_id === null) return;
  const engine = await context.engines.byResource(record.compute_resource_id);
  if (engine === null) return;
  await engine.cancel(record.job_id);
  await engine.remove(record.job_id);
}

async function tryLater({ services }: JobContext, record: CleanUp, reason: string): Promise<void> {
  const pause = PAUSES_SECONDS[record.attempts];
  services.log.warn({ job: record.job_id, reason, pause }, 'a job could not be removed from its compute resource');
  await services.database.transaction().execute(async (transaction) => {
    await transaction
      .updateTable('compute_cleanup')
      .set({ attempts: record.attempts + 1, last_error: reason })
      .where('id', '=', record.id)
      .execute();
    if (pause !== undefined) await enqueue(transaction, 'cleanUp', { cleanupId: record.id }, { delaySeconds: pause });
  });
}

async function clearOutputOfCancelled({ services }: JobContext, instanceId: number): Promise<void> {
  const output = await outputOfCancelled(services.database, instanceId);
  if (output !== null) await removeContents(services, output);
}

async function outputOfCancelled(database: Database, instanceId: number): Promise<string | null> {
  const row = await database
    .selectFrom('plugin_instance')
    .innerJoin('folder', 'folder.id', 'plugin_instance.output_folder_id')
    .select('path')
    .where('plugin_instance.id', '=', instanceId)
    .where('status', '=', 'cancelled')
    .executeTakeFirst();
  return row?.path ?? null;
}
