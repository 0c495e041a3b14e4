/** `waiting` → `copying`, `scheduled` or `cancelled`, as soon as the parents say which. */
import { sql } from 'kysely';
import type { Instance } from '../../instances/instance.ts';
import { type Status, statusFromParents } from '../../instances/status.ts';
import { moveTo, NOW } from '../../instances/transitions.ts';
import type { JobContext, Outcome } from '../context.ts';

export async function leaveWaiting(context: JobContext, instance: Instance): Promise<Outcome> {
  return context.services.database.transaction().execute(async (transaction) => {
    // A parent that is ending just now has looked for its children before this one could be seen: wait for its commit.
    const { rows } = await sql<{ status: Status }>`
      select parent.status from plugin_instance_parent link join plugin_instance parent on parent.id = link.parent_id
      where link.plugin_instance_id = ${instance.id} order by parent.id for share of parent`.execute(transaction);
    const next = statusFromParents(
      rows.map(({ status }) => status),
      instance.resource?.requiresCopyJob ?? false,
    );
    if (next === 'waiting') return 'rest';
    const times = next === 'cancelled' ? {} : { start_date: NOW, end_date: NOW };
    await moveTo(transaction, instance.id, instance.status, next, times);
    return 'go on';
  });
}
