/** Removing a plugin: with its parameters, its instances and, when it is the last version, its meta. */
import type { Transaction } from '../database/database.ts';
import { NotFound } from '../hypermedia/errors.ts';
import type { ActionCall } from '../hypermedia/routes.ts';
import { lockCatalogue } from './registration.ts';

/** Cancels and deletes all instances of a plugin, and gives their ids. The subject of instances provides it. */
export type InstanceRemoval = (transaction: Transaction, pluginId: number) => Promise<readonly number[]>;

/** Jobs of its instances are cancelled first; all of it in one transaction. */
export async function removePlugin(call: ActionCall, removeInstances: InstanceRemoval): Promise<void> {
  const { transaction, services, caller, path, afterCommit } = call;
  const pluginId = path.id ?? 0;
  await lockCatalogue(transaction);
  const plugin = await transaction
    .selectFrom('plugin as p')
    .innerJoin('plugin_meta as m', 'm.id', 'p.meta_id')
    .select(['m.id as metaId', 'm.name', 'p.version'])
    .where('p.id', '=', pluginId)
    .executeTakeFirst();
  if (!plugin) throw new NotFound('plugin');
  const instanceIds = await removeInstances(transaction, pluginId);
  await transaction.deleteFrom('plugin').where('id', '=', pluginId).execute();
  const removedMeta = await transaction
    .deleteFrom('plugin_meta')
    .where('id', '=', plugin.metaId)
    .where((meta) => meta.not(meta.exists(meta.selectFrom('plugin').select('id').where('meta_id', '=', plugin.metaId))))
    .executeTakeFirst();
  afterCommit(() => {
    services.log.info(
      {
        plugin: plugin.name,
        version: plugin.version,
        by: caller.username,
        lastVersion: removedMeta.numDeletedRows > 0n,
        instanceIds,
      },
      'removed a plugin with its instances',
    );
  });
}
