/** The plugins that are always there, and the compute resource inside of the server that runs them. */
import type { Transaction } from '../database/database.ts';
import { InvalidFields } from '../hypermedia/errors.ts';
import type { Log } from '../log.ts';
import type { Services } from '../services.ts';
import { BUILTIN_PLUGINS } from './builtin-descriptors.ts';
import type { PluginDescriptor } from './descriptor.ts';
import { addComputeResources, findPlugin, insertPlugin, lockCatalogue, requireFree } from './registration.ts';

const BUILTIN_URL = 'builtin:';
const BUILTIN_NAME = 'builtin';

async function ensureBuiltinResource(transaction: Transaction): Promise<number> {
  const known = await transaction
    .selectFrom('compute_resource')
    .select('id')
    .where('compute_url', '=', BUILTIN_URL)
    .orderBy('id')
    .executeTakeFirst();
  if (known) return known.id;
  const made = await transaction
    .insertInto('compute_resource')
    .values({
      name: await freeName(transaction),
      compute_url: BUILTIN_URL,
      compute_innetwork: true,
      description: 'Inside of the server itself: for plugins that only arrange files.',
      described_at: new Date().toISOString(),
    })
    .returning('id')
    .executeTakeFirstOrThrow();
  return made.id;
}

/** Somebody may have given the name to a resource of their own. */
async function freeName(transaction: Transaction): Promise<string> {
  const taken = await transaction
    .selectFrom('compute_resource')
    .select('name')
    .where('name', 'like', `${BUILTIN_NAME}%`)
    .execute();
  const names = new Set(taken.map(({ name }) => name));
  let name = BUILTIN_NAME;
  for (let number = 2; names.has(name); number++) name = `${BUILTIN_NAME}-${number}`;
  return name;
}

/** Somebody may have registered a plugin of their own that stands in the way; the server starts without the built-in one then. */
async function registerBuiltin(
  transaction: Transaction,
  descriptor: PluginDescriptor,
  resourceId: number,
  ownerId: number | null,
  log: Log,
): Promise<void> {
  const named = { plugin: descriptor.meta.name, version: descriptor.version.version };
  try {
    await insertPlugin(transaction, descriptor, [resourceId], ownerId);
    log.info(named, 'registered a built-in plugin');
  } catch (error) {
    if (!(error instanceof InvalidFields)) throw error;
    log.warn({ ...named, err: error }, 'a built-in plugin cannot be registered');
  }
}

/** Registers what is missing of the built-in plugins; they belong to the first administrator. To be called at each start. */
export async function ensureBuiltinPlugins({ database, log }: Services): Promise<void> {
  await database.transaction().execute(async (transaction) => {
    await lockCatalogue(transaction);
    const resourceId = await ensureBuiltinResource(transaction);
    const owner = await transaction
      .selectFrom('account')
      .select('id')
      .where('is_administrator', '=', true)
      .orderBy('id')
      .executeTakeFirst();
    for (const descriptor of BUILTIN_PLUGINS) {
      const known = await findPlugin(transaction, descriptor.meta.name, descriptor.version.version);
      if (!known) await registerBuiltin(transaction, descriptor, resourceId, owner?.id ?? null, log);
    }
  });
}

/**
 * Registering a built-in plugin again makes it run on these compute resources too, with the image that the descriptor names
 * (inside of the server no image is needed).
 * @returns the plugin's id; null when the descriptor is of another plugin
 */
export async function registerAgain(
  transaction: Transaction,
  descriptor: PluginDescriptor,
  resourceIds: readonly number[],
): Promise<number | null> {
  const { meta, version } = descriptor;
  const isBuiltin = BUILTIN_PLUGINS.some(
    (one) => one.meta.name === meta.name && one.version.version === version.version,
  );
  const known = isBuiltin ? await findPlugin(transaction, meta.name, version.version) : null;
  if (known === null) return null;
  await requireFree(transaction, descriptor, known.id);
  await transaction.updateTable('plugin').set({ dock_image: version.dock_image }).where('id', '=', known.id).execute();
  await addComputeResources(transaction, known.id, resourceIds);
  return known.id;
}
