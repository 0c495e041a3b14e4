/** What administrators do with plugins: the bodies of the administration API, and the same for the command line. */

import { anyone } from '../access/caller.ts';
import type { Transaction } from '../database/database.ts';
import { Forbidden, invalid, invalidObject, NotFound } from '../hypermedia/errors.ts';
import { file, type OptionalField, text, url } from '../hypermedia/input.ts';
import { type ActionCall, change, creation } from '../hypermedia/routes.ts';
import type { Services } from '../services.ts';
import type { IncomingFile } from '../storage/storage.ts';
import { registerAgain } from './builtin.ts';
import { type PluginDescriptor, parseDescriptor, parseDescriptorFile } from './descriptor.ts';
import {
  computeNamesProblems,
  findComputeResources,
  findPlugin,
  insertPlugin,
  lockCatalogue,
  setComputeResources,
  splitNames,
} from './registration.ts';
import { readStorePlugin } from './store.ts';

const LARGEST_DESCRIPTOR_BYTES = 1024 * 1024;

const compute_names = text({ max: 2000, required: true });

async function readDescriptorFile({ storage }: Services, content: IncomingFile): Promise<PluginDescriptor> {
  if (content.sizeBytes > LARGEST_DESCRIPTOR_BYTES) {
    throw invalid(
      'fname',
      `The file is larger than the ${LARGEST_DESCRIPTOR_BYTES} bytes that a plugin's description may have.`,
    );
  }
  if (content.sizeBytes === 0) throw invalid('fname', 'The submitted file is empty.');
  return parseDescriptorFile(await storage.readIncoming(content));
}

/**
 * Registers what a descriptor describes.
 * @returns the new plugin's id, or that of a built-in plugin which now runs on these compute resources too
 */
async function register(
  transaction: Transaction,
  descriptor: PluginDescriptor,
  names: readonly string[],
  ownerId: number | null,
): Promise<number> {
  await lockCatalogue(transaction);
  const resourceIds = await findComputeResources(transaction, names);
  const builtinId = await registerAgain(transaction, descriptor, resourceIds);
  return builtinId ?? insertPlugin(transaction, descriptor, resourceIds, ownerId);
}

/** As `register`; but a version that is there already only gets exactly these compute resources. */
async function registerFromStore(
  transaction: Transaction,
  descriptor: PluginDescriptor,
  names: readonly string[],
  ownerId: number | null,
): Promise<number> {
  await lockCatalogue(transaction);
  const resourceIds = await findComputeResources(transaction, names);
  const known = await findPlugin(transaction, descriptor.meta.name, descriptor.version.version);
  if (known === null) return insertPlugin(transaction, descriptor, resourceIds, ownerId);
  await setComputeResources(transaction, known.id, resourceIds);
  return known.id;
}

export const pluginCreation = creation({
  input: { fname: file(), compute_names, plugin_store_url: url({ blank: true }) },
  check: ({ services }, { compute_names: names }) => computeNamesProblems(services.database, names),
  ask: async (call, input) => {
    const names = splitNames(input.compute_names);
    const { fname, plugin_store_url } = input;
    if (fname) {
      const descriptor = await readDescriptorFile(call.services, fname.content);
      return ({ transaction, caller }: ActionCall) => register(transaction, descriptor, names, caller.id);
    }
    if (!plugin_store_url) {
      throw invalidObject(
        "Send the plugin's descriptor as the file fname, or its address in a store as plugin_store_url.",
      );
    }
    const descriptor = await readStorePlugin(plugin_store_url);
    return ({ transaction, caller }: ActionCall) => registerFromStore(transaction, descriptor, names, caller.id);
  },
});

/** A user name; null and the empty text mean nobody. */
const owner: OptionalField<string> = {
  ...text({ max: 32, blank: true }),
  read: (value) => (value === null ? '' : text({ max: 32, blank: true }).read(value)),
};

/** Somebody may have removed it since it was looked at. @throws {NotFound} */
async function requirePlugin(transaction: Transaction, id: number): Promise<void> {
  const plugin = await transaction.selectFrom('plugin').select('id').where('id', '=', id).executeTakeFirst();
  if (!plugin) throw new NotFound('plugin');
}

async function findOwner(transaction: Transaction, username: string): Promise<number | null> {
  if (username === '') return null;
  const account = await transaction
    .selectFrom('account')
    .select('id')
    .where('username', '=', username)
    .executeTakeFirst();
  if (!account) throw invalid('owner_username', `There is no user named "${username}".`);
  return account.id;
}

/** Clients may send back what they were shown: only another owner is a change. @throws {Forbidden} unless the caller is an administrator */
async function changeOwner({ transaction, caller }: ActionCall, pluginId: number, username: string): Promise<void> {
  const ownerId = await findOwner(transaction, username);
  const changed = await transaction
    .updateTable('plugin')
    .set({ owner_id: ownerId })
    .where('id', '=', pluginId)
    .where('owner_id', 'is distinct from', ownerId)
    .executeTakeFirst();
  if (changed.numUpdatedRows > 0n && caller.role !== 'administrator') {
    throw new Forbidden('Only an administrator may give a plugin to somebody else.');
  }
}

export const pluginChange = change({
  rule: anyone,
  input: { compute_names, owner_username: owner },
  run: async (call, input) => {
    const { transaction, path } = call;
    const pluginId = path.id ?? 0;
    await lockCatalogue(transaction);
    await requirePlugin(transaction, pluginId);
    await setComputeResources(
      transaction,
      pluginId,
      await findComputeResources(transaction, splitNames(input.compute_names)),
    );
    if (input.owner_username !== undefined) await changeOwner(call, pluginId, input.owner_username);
  },
});

/**
 * Registers a plugin from the parsed JSON of its descriptor, as the command line does.
 * @param ownerUsername null: the plugin belongs to nobody @returns the plugin's id @throws {InvalidFields}
 */
export async function registerDescriptor(
  { database }: Pick<Services, 'database'>,
  descriptor: unknown,
  computeNames: readonly string[],
  ownerUsername: string | null,
): Promise<number> {
  const parsed = parseDescriptor(descriptor);
  return database.transaction().execute(async (transaction) => {
    const ownerId = ownerUsername === null ? null : await findOwner(transaction, ownerUsername);
    return register(transaction, parsed, computeNames, ownerId);
  });
}
