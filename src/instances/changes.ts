/** Renaming and cancelling instances. */
import { invalid } from '../hypermedia/errors.ts';
import type { ActionCall } from '../hypermedia/routes.ts';
import { cancelTree } from './transitions.ts';

interface InstanceChange {
  readonly title?: string;
  readonly status?: string;
}

/** What is wrong with a status that a request asks for, or null. */
export function wantedStatusProblem(status: string): string | null {
  return status === 'cancelled'
    ? null
    : `The status cannot be set to "${status.slice(0, 100)}"; only "cancelled" can be set.`;
}

/** Stores a new title; a status is always `cancelled`. @throws {InvalidFields} when the instance has ended otherwise */
export async function changeInstanceBy(
  { transaction, path }: ActionCall,
  { title, status }: InstanceChange,
): Promise<void> {
  const id = path.id ?? 0;
  if (status !== undefined) {
    await cancelTree(transaction, id);
    const { status: present } = await transaction
      .selectFrom('plugin_instance')
      .select('status')
      .where('id', '=', id)
      .executeTakeFirstOrThrow();
    if (present !== 'cancelled')
      throw invalid('status', `The instance has ended as ${present} and cannot be cancelled.`);
  }
  if (title !== undefined)
    await transaction.updateTable('plugin_instance').set({ title }).where('id', '=', id).execute();
}
