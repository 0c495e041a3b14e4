/**
 * Which instances may run on a compute resource of this machine, where only so many jobs run at once.
 *
 * A slot belongs to an instance from its admission (in `scheduled`) until its job has ended. Slots go round the owners: to the
 * one with the fewest jobs running, and of his instances to the oldest.
 */
import { sql } from 'kysely';
import type { Database } from '../database/database.ts';
import { enqueueAdvance } from '../database/queue.ts';

/**
 * Gives the free slots of a compute resource away; those who get one are advanced.
 * @param slots jobs that may run there at once
 * @param askerId an instance that goes on by itself when it gets one
 * @returns whether the asker got one
 */
export async function admit(
  database: Database,
  computeResourceId: number,
  slots: number,
  askerId: number | null = null,
): Promise<boolean> {
  return database.transaction().execute(async (transaction) => {
    // One at a time for each resource, so that two cannot give the same slot away.
    await sql`select from compute_resource where id = ${computeResourceId} for no key update`.execute(transaction);
    const { rows } = await sql<{ id: number }>`
      with running as (
        select owner_id, count(*) as jobs from plugin_instance
        where compute_resource_id = ${computeResourceId} and active and admitted group by owner_id
      ), queued as (
        select id, coalesce(jobs, 0) + row_number() over (partition by owner_id order by id) as turn
        from plugin_instance left join running using (owner_id)
        where compute_resource_id = ${computeResourceId} and status = 'scheduled' and not admitted
      ), next as (
        select id from queued order by turn, id
        limit greatest(0, ${slots} - (select coalesce(sum(jobs), 0) from running))
      ), free as (
        -- a row that is being changed, perhaps cancelled, is passed over; its change asks for admission again
        select id from plugin_instance join next using (id)
        where status = 'scheduled' and not admitted order by id for no key update of plugin_instance skip locked
      )
      update plugin_instance set admitted = true from free where plugin_instance.id = free.id
      returning plugin_instance.id`.execute(transaction);
    const admitted = rows.map(({ id }) => id);
    await enqueueAdvance(
      transaction,
      admitted.filter((id) => id !== askerId),
    );
    return askerId !== null && admitted.includes(askerId);
  });
}
