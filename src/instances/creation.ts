/** Making plugin instances: everything of one in one transaction (`instances.md` section 4). */
import { sql } from 'kysely';
import { runInFeed } from '../access/feeds.ts';
import type { Transaction } from '../database/database.ts';
import { enqueueAdvance } from '../database/queue.ts';
import { ensureFolder } from '../files/tree.ts';
import { Forbidden, type InvalidFields, invalid } from '../hypermedia/errors.ts';
import type { Members } from '../hypermedia/input.ts';
import type { ActionCall } from '../hypermedia/routes.ts';
import { createFeed, touchFeed } from './feed.ts';
import { namedParents, type ParameterValues, readParameterValues } from './parameter-values.ts';
import type { ComputeResource, PluginFacts } from './plugin-facts.ts';
import { chooseComputeResource, type InstanceLimits, limitsOf, type RunRequest } from './request.ts';
import { initialStatus } from './transitions.ts';

/** Where in the tree an instance goes. */
interface Place {
  readonly feedId: number;
  /** Folder that its own folder is made in. */
  readonly folderPath: string;
  /** null for the root of a feed. */
  readonly previousId: number | null;
  /** All instances that it waits for, `previous` among them, in the order in which it joins them. */
  readonly parentIds: readonly number[];
}

interface NewInstance {
  readonly plugin: PluginFacts;
  readonly title: string;
  readonly ownerId: number;
  readonly computeResource: ComputeResource;
  readonly limits: InstanceLimits;
  readonly values: ParameterValues;
}

/** An instance that another is to be made below. */
export interface Previous {
  readonly id: number;
  readonly feedId: number;
}

function badPrevious(problem: string): InvalidFields {
  return invalid('previous_id', problem);
}

/** The parent that a request names. @throws {InvalidFields} when it is none that the caller may build on */
async function findPrevious({ transaction, caller }: ActionCall, given: unknown): Promise<Previous> {
  const isId = (typeof given === 'number' || typeof given === 'string') && /^\s*\d{1,15}\s*$/.test(String(given));
  if (!isId) throw badPrevious('Enter the id of the plugin instance whose outputs are the input.');
  const id = Number(given);
  const { rows } = await sql<Previous & { isLeaving: boolean }>`
    select i.id, i.feed_id as "feedId", i.deletion_status = 'pending' as "isLeaving"
    from plugin_instance i join feed f on f.id = i.feed_id
    where i.id = ${id} and ${runInFeed('f', caller)}`.execute(transaction);
  const [previous] = rows;
  if (!previous) throw badPrevious(`There is no plugin instance ${id} in a feed that you own or share.`);
  if (previous.isLeaving) throw badPrevious(`The plugin instance ${id} is being deleted.`);
  return { id: previous.id, feedId: previous.feedId };
}

/** @throws {InvalidFields} naming `value` unless all are of the parent's feed and the parent is among them */
async function requireParents(transaction: Transaction, previous: Previous, ids: readonly number[]): Promise<void> {
  if (ids.length === 0) return;
  if (!ids.includes(previous.id)) {
    throw invalid('value', `plugininstances must hold the id of the previous plugin instance, ${previous.id}.`);
  }
  const found = await transaction
    .selectFrom('plugin_instance')
    .select('id')
    .where('id', 'in', ids)
    .where('feed_id', '=', previous.feedId)
    .execute();
  const missing = ids.find((id) => !found.some((one) => one.id === id));
  if (missing !== undefined)
    throw invalid('value', `There is no plugin instance ${missing} in feed ${previous.feedId}.`);
}

/** Beside the outputs of the nearest ancestor that still has its own, wherever they are now; else in the feed's folder. */
async function folderBelow(transaction: Transaction, previous: Previous): Promise<string> {
  const { rows } = await sql<{ path: string | null }>`
    with recursive up(id, previous_id, output_folder_id, depth) as (
      select id, previous_id, output_folder_id, 0 from plugin_instance where id = ${previous.id}
      union all
      select i.id, i.previous_id, i.output_folder_id, up.depth + 1
      from plugin_instance i join up on i.id = up.previous_id where up.output_folder_id is null
    )
    select coalesce(
      (select beside.path from up join folder data on data.id = up.output_folder_id
        join folder beside on beside.id = data.parent_id order by up.depth limit 1),
      (select top.path from feed f join folder top on top.id = f.folder_id where f.id = ${previous.feedId}),
      (select 'home/' || u.username || '/feeds/feed_' || f.id
        from feed f join account u on u.id = f.owner_id where f.id = ${previous.feedId})) as path`.execute(transaction);
  const path = rows[0]?.path;
  if (!path) throw new Error(`the feed ${previous.feedId} of the plugin instance ${previous.id} is gone`);
  return path;
}

async function insertInstance(transaction: Transaction, made: NewInstance, place: Place): Promise<number> {
  const { plugin, title, ownerId, computeResource, limits } = made;
  const status = await initialStatus(transaction, place.parentIds, computeResource.requiresCopyJob);
  const { id } = await transaction
    .insertInto('plugin_instance')
    .values({
      title,
      plugin_id: plugin.id,
      feed_id: place.feedId,
      previous_id: place.previousId,
      owner_id: ownerId,
      compute_resource_id: computeResource.id,
      status,
      ...limits,
    })
    .returning('id')
    .executeTakeFirstOrThrow();
  return id;
}

async function insertParents(transaction: Transaction, id: number, parentIds: readonly number[]): Promise<void> {
  if (parentIds.length === 0) return;
  const rows = parentIds.map((parent_id, position) => ({ plugin_instance_id: id, parent_id, position }));
  await transaction.insertInto('plugin_instance_parent').values(rows).execute();
}

async function insertValues(transaction: Transaction, id: number, values: ParameterValues): Promise<void> {
  if (values.size === 0) return;
  const rows = [...values].map(([parameterId, value]) => ({
    plugin_instance_id: id,
    plugin_parameter_id: parameterId,
    value: JSON.stringify(value),
  }));
  await transaction.insertInto('plugin_instance_parameter').values(rows).execute();
}

/** Makes the rows of an instance and has it started. */
async function insertAll(transaction: Transaction, made: NewInstance, place: Place): Promise<number> {
  const id = await insertInstance(transaction, made, place);
  const output = await ensureFolder(transaction, `${place.folderPath}/${made.plugin.name}_${id}/data`, made.ownerId);
  await transaction.updateTable('plugin_instance').set({ output_folder_id: output.id }).where('id', '=', id).execute();
  await insertParents(transaction, id, place.parentIds);
  await insertValues(transaction, id, made.values);
  await enqueueAdvance(transaction, [id]);
  return id;
}

/** Makes an instance below another. @throws {InvalidFields} when its feed is being deleted */
export async function createChild(
  transaction: Transaction,
  made: NewInstance,
  previous: Previous,
  parentIds: readonly number[],
): Promise<number> {
  const isThere = await touchFeed(transaction, previous.feedId);
  if (!isThere) throw badPrevious(`The feed ${previous.feedId} is being deleted.`);
  const folderPath = await folderBelow(transaction, previous);
  return insertAll(transaction, made, { feedId: previous.feedId, folderPath, previousId: previous.id, parentIds });
}

async function createRoot(transaction: Transaction, made: NewInstance, ownerName: string): Promise<number> {
  const owner = { id: made.ownerId, username: ownerName };
  const feed = await createFeed(transaction, { name: made.title || made.plugin.name, owner });
  return insertAll(transaction, made, {
    feedId: feed.id,
    folderPath: feed.folderPath,
    previousId: null,
    parentIds: [],
  });
}

/**
 * Runs a plugin as a request asks for, and starts a feed if the plugin does.
 * @param members of the body, where the plugin's parameters are
 * @throws {InvalidFields}
 */
export async function runPlugin(
  call: ActionCall,
  plugin: PluginFacts,
  request: RunRequest,
  members: Members,
): Promise<number> {
  const { transaction, caller } = call;
  if (caller.id === null) throw new Error('anonymous callers run nothing');
  const computeResource = chooseComputeResource(plugin, request.compute_resource_name);
  if (computeResource === null) {
    throw invalid('compute_resource_name', `The plugin ${plugin.name} is not registered on any compute resource.`);
  }
  if (plugin.type === 'fs' && call.caller.role === 'job')
    throw new Forbidden('A running job may not begin a new feed.');
  const previous = plugin.type === 'fs' ? null : await findPrevious(call, request.previous_id);
  const values = await readParameterValues(plugin, members, {
    transaction,
    caller,
    requireParents: async (ids) => {
      if (previous !== null) await requireParents(transaction, previous, ids);
    },
  });
  const made = {
    plugin,
    title: request.title ?? '',
    ownerId: caller.id,
    computeResource,
    limits: limitsOf(plugin, request),
    values,
  };
  if (previous === null) return createRoot(transaction, made, caller.username);
  const named = namedParents(plugin, values);
  return createChild(transaction, made, previous, named.length > 0 ? named : [previous.id]);
}
