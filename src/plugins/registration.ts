/** Registering plugins, changing where they run and whose they are, and removing them: each in one transaction. */
import { sql } from 'kysely';
import type { Queries, Transaction } from '../database/database.ts';
import { invalid, invalidObject } from '../hypermedia/errors.ts';
import type { DescribedMeta, PluginDescriptor } from './descriptor.ts';

/** Changes of the catalogue wait for each other: they are rare, and their rules concern many rows at once. */
export async function lockCatalogue(transaction: Transaction): Promise<void> {
  await sql`select pg_advisory_xact_lock(hashtext('plugin catalogue'))`.execute(transaction);
}

/** The names in a text such as `host, cluster`: blanks around them and empty ones do not count. */
export function splitNames(names: string): readonly string[] {
  return [...new Set(names.split(',').map((name) => name.trim()))].filter((name) => name !== '');
}

async function lookUp(
  database: Queries,
  names: readonly string[],
): Promise<{ ids: readonly number[]; problem: string | null }> {
  if (names.length === 0) {
    return { ids: [], problem: 'Name at least one compute resource; separate several with commas.' };
  }
  const found = await database
    .selectFrom('compute_resource')
    .select(['id', 'name'])
    .where('name', 'in', names)
    .execute();
  const missing = names.filter((name) => !found.some((resource) => resource.name === name)).map((name) => `"${name}"`);
  const problem = missing.length > 0 ? `There is no compute resource named ${missing.join(', ')}.` : null;
  return { ids: found.map(({ id }) => id), problem };
}

/** What is wrong with a body's `compute_names`, for the reader; `findComputeResources` is for truth. */
export async function computeNamesProblems(
  database: Queries,
  names: string | undefined,
): Promise<Record<string, string[]>> {
  if (names === undefined) return {};
  const { problem } = await lookUp(database, splitNames(names));
  return problem === null ? {} : { compute_names: [problem] };
}

/** @throws {InvalidFields} naming `compute_names` for an unknown one, or for none at all */
export async function findComputeResources(database: Queries, names: readonly string[]): Promise<readonly number[]> {
  const { ids, problem } = await lookUp(database, names);
  if (problem !== null) throw invalid('compute_names', problem);
  return ids;
}

export interface KnownPlugin {
  readonly id: number;
  readonly metaId: number;
}

/** The version of a plugin, if it is registered. */
export async function findPlugin(database: Queries, name: string, version: string): Promise<KnownPlugin | null> {
  const known = await database
    .selectFrom('plugin as p')
    .innerJoin('plugin_meta as m', 'm.id', 'p.meta_id')
    .select(['p.id', 'p.meta_id as metaId'])
    .where('m.name', '=', name)
    .where('p.version', '=', version)
    .executeTakeFirst();
  return known ?? null;
}

/** Makes the meta, or makes it say what its newest version's descriptor does. @throws {InvalidFields} for another type */
async function putMeta(transaction: Transaction, { name, type, ...described }: DescribedMeta): Promise<number> {
  const known = await transaction
    .selectFrom('plugin_meta')
    .select(['id', 'type'])
    .where('name', '=', name)
    .executeTakeFirst();
  if (!known) {
    const made = await transaction
      .insertInto('plugin_meta')
      .values({ name, type, ...described })
      .returning('id')
      .executeTakeFirstOrThrow();
    return made.id;
  }
  if (known.type !== type) {
    throw invalid(
      'type',
      `"${name}" is registered with type ${known.type}, which all its versions share; this one says ${type}.`,
    );
  }
  await transaction
    .updateTable('plugin_meta')
    .set({ ...described, modification_date: sql<string>`now()` })
    .where('id', '=', known.id)
    .execute();
  return known.id;
}

/** @param exceptId a version that does not count @throws {InvalidFields} when the version or image is already registered */
export async function requireFree(
  transaction: Transaction,
  { meta, version }: PluginDescriptor,
  exceptId: number | null,
): Promise<void> {
  const taken = await transaction
    .selectFrom('plugin as p')
    .innerJoin('plugin_meta as m', 'm.id', 'p.meta_id')
    .select(['p.version', 'p.dock_image'])
    .where('m.name', '=', meta.name)
    .where('p.id', '!=', exceptId ?? 0)
    .where((plugin) =>
      plugin.or([plugin('p.version', '=', version.version), plugin('p.dock_image', '=', version.dock_image)]),
    )
    .executeTakeFirst();
  if (!taken) return;
  const same = taken.version === version.version;
  const what = same ? `version ${taken.version}` : `the image ${taken.dock_image} (version ${taken.version})`;
  throw invalidObject(
    `The plugin "${meta.name}" is already registered with ${what}. To change where it runs, PUT its compute_names.`,
  );
}

async function insertVersion(
  transaction: Transaction,
  descriptor: PluginDescriptor,
  metaId: number,
  ownerId: number | null,
): Promise<number> {
  const { id } = await transaction
    .insertInto('plugin')
    .values({ ...descriptor.version, meta_id: metaId, owner_id: ownerId })
    .returning('id')
    .executeTakeFirstOrThrow();
  if (descriptor.parameters.length === 0) return id;
  await transaction
    .insertInto('plugin_parameter')
    .values(
      descriptor.parameters.map(({ default: value, ...parameter }, position) => ({
        ...parameter,
        position,
        plugin_id: id,
        default_value: value === null ? null : JSON.stringify(value),
      })),
    )
    .execute();
  return id;
}

/** Registers a plugin for these compute resources and no others. */
export async function setComputeResources(
  transaction: Transaction,
  pluginId: number,
  resourceIds: readonly number[],
): Promise<void> {
  await transaction
    .deleteFrom('plugin_compute_resource')
    .where('plugin_id', '=', pluginId)
    .where('compute_resource_id', 'not in', resourceIds)
    .execute();
  await addComputeResources(transaction, pluginId, resourceIds);
}

/** Registers a plugin for these compute resources too. */
export async function addComputeResources(
  transaction: Transaction,
  pluginId: number,
  resourceIds: readonly number[],
): Promise<void> {
  await transaction
    .insertInto('plugin_compute_resource')
    .values(resourceIds.map((id) => ({ plugin_id: pluginId, compute_resource_id: id })))
    .onConflict((conflict) => conflict.doNothing())
    .execute();
}

/**
 * Makes a new version of a plugin, and its meta if it is the first. The catalogue must be locked.
 * @returns the plugin's id @throws {InvalidFields} when the version or image is taken, or the type differs from its meta's
 */
export async function insertPlugin(
  transaction: Transaction,
  descriptor: PluginDescriptor,
  resourceIds: readonly number[],
  ownerId: number | null,
): Promise<number> {
  await requireFree(transaction, descriptor, null);
  const metaId = await putMeta(transaction, descriptor.meta);
  const id = await insertVersion(transaction, descriptor, metaId, ownerId);
  await addComputeResources(transaction, id, resourceIds);
  return id;
}
