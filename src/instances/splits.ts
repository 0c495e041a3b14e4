/** Splitting: new branches below an instance, each with a part of its outputs (`instances.md` section 6). */
import type { Queries } from '../database/database.ts';
import { invalid, invalidObject, NotFound } from '../hypermedia/errors.ts';
import type { ActionCall, Call } from '../hypermedia/routes.ts';
import { createChild } from './creation.ts';
import type { ParameterValue, ParameterValues } from './parameter-values.ts';
import { readFilters } from './path-filters.ts';
import { type ComputeResource, findNewestPlugin, type PluginFacts } from './plugin-facts.ts';
import { chooseComputeResource, limitsOf } from './request.ts';

/** The plugin that copies the parts. */
const COPYING_PLUGIN = 'pl-topologicalcopy';

interface SplitRequest {
  readonly filter?: string;
  readonly compute_resource_name?: string;
}

interface Copier {
  readonly plugin: PluginFacts;
  readonly computeResource: ComputeResource;
}

async function findCopier(database: Queries, resourceName: string | undefined): Promise<Copier> {
  const plugin = await findNewestPlugin(database, COPYING_PLUGIN);
  const computeResource = plugin && chooseComputeResource(plugin, resourceName);
  if (plugin && computeResource) return { plugin, computeResource };
  if (resourceName === undefined)
    throw invalidObject(`Splits need the plugin ${COPYING_PLUGIN}, which is not registered.`);
  throw invalid('compute_resource_name', `The plugin ${COPYING_PLUGIN} is not registered on "${resourceName}".`);
}

/** What one branch's instance is told. */
function branchValues(plugin: PluginFacts, instanceId: number, filter: string): ParameterValues {
  const told = new Map<string, ParameterValue>([['plugininstances', String(instanceId)]]);
  if (filter !== '') told.set('filter', filter);
  const known = plugin.parameters.flatMap(({ id, name }): [number, ParameterValue][] => {
    const value = told.get(name);
    return value === undefined ? [] : [[id, value]];
  });
  return new Map(known);
}

async function createSplit(
  { transaction, caller, path }: ActionCall,
  copier: Copier,
  filters: readonly string[],
): Promise<number> {
  if (caller.id === null) throw new Error('anonymous callers split nothing');
  const previous = await transaction
    .selectFrom('plugin_instance')
    .select(['id', 'feed_id as feedId'])
    .where('id', '=', path.id ?? 0)
    .executeTakeFirst();
  if (!previous) throw new NotFound('plugin instance');
  const made: number[] = [];
  for (const filter of filters) {
    const values = branchValues(copier.plugin, previous.id, filter);
    const branch = { ...copier, title: '', ownerId: caller.id, limits: limitsOf(copier.plugin), values };
    made.push(await createChild(transaction, branch, previous, [previous.id]));
  }
  const { id } = await transaction
    .insertInto('plugin_instance_split')
    .values({ plugin_instance_id: previous.id, filter: filters.join(','), created_plugin_instance_ids: made })
    .returning('id')
    .executeTakeFirstOrThrow();
  return id;
}

/** Checks a request to split; gives what makes the branches. @throws {InvalidFields} */
export async function prepareSplit(call: Call, request: SplitRequest): Promise<(call: ActionCall) => Promise<number>> {
  const filters = readFilters(request.filter ?? '', 'filter').map(({ text }) => text);
  const copier = await findCopier(call.services.database, request.compute_resource_name);
  return (acting) => createSplit(acting, copier, filters);
}
