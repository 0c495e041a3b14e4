/** Routes of plugin instances, their parameters and splits (`instances.md`). */
import { sql } from 'kysely';
import type { CallerSql } from '../access/caller.ts';
import {
  changeInstance,
  deleteInstance,
  listedInstances,
  madeBy,
  ownInstance,
  readInstance,
  treeOf,
} from '../access/instances.ts';
import { DELETION_STATUSES } from '../enumerations.ts';
import { inTransaction } from '../hypermedia/actions.ts';
import { NotFound } from '../hypermedia/errors.ts';
import {
  contains,
  equalNumber,
  exactly,
  type Filter,
  flag,
  oneOf,
  parseInteger,
  since,
  special,
  until,
} from '../hypermedia/filters.ts';
import { type InputFields, readInput, text } from '../hypermedia/input.ts';
import {
  type Call,
  type Creation,
  change,
  creation,
  item,
  list,
  type Order,
  PUBLIC,
  type Route,
  SIGNED_IN,
} from '../hypermedia/routes.ts';
import { plugin } from '../plugins/resources.ts';
import { changeInstanceBy, wantedStatusProblem } from './changes.ts';
import { runPlugin } from './creation.ts';
import { requestInstanceDeletion } from './deletion.ts';
import { findPlugin } from './plugin-facts.ts';
import { ANY_PLUGIN, requestFields } from './request.ts';
import {
  instance,
  PARAMETER_TYPE_ORDER,
  PARAMETER_TYPES,
  parameterValue,
  parameterValueOf,
  split,
} from './resources.ts';
import { prepareSplit } from './splits.ts';
import { STATUSES } from './status.ts';

export const NEWEST_INSTANCES_FIRST = sql`i.start_date desc, i.id desc`;
/** An administrator's are the whole table, anybody else's few of it. */
const NEWEST_LISTED_INSTANCES_FIRST: Order = ({ caller }) =>
  caller.role === 'administrator' ? NEWEST_INSTANCES_FIRST : sql`i.start_date + interval '0' desc, i.id desc`;

const readable = (caller: CallerSql) => (alias: string) => readInstance(alias, caller);

const FILTERS: readonly Filter[] = [
  equalNumber('id', sql`i.id`),
  since('min_start_date', sql`i.start_date`),
  until('max_start_date', sql`i.start_date`),
  since('min_end_date', sql`i.end_date`),
  until('max_end_date', sql`i.end_date`),
  special(
    'root_id',
    'integer',
    parseInteger,
    (id, { caller }) => sql`i.id in (${treeOf(sql`${id}`, readable(caller))})`,
  ),
  special(
    'previous_id',
    'integer',
    parseInteger,
    (id, { caller }) => sql`i.previous_id = ${id}::bigint
      and exists (select from plugin_instance parent where parent.id = ${id}::bigint and ${readInstance('parent', caller)})`,
  ),
  contains('title', sql`i.title`),
  oneOf('status', sql`i.status`, STATUSES),
  flag('active', sql`i.active`),
  exactly('owner_username', sql`u.username`),
  equalNumber('feed_id', sql`i.feed_id`),
  equalNumber('plugin_id', sql`i.plugin_id`),
  contains('plugin_name', sql`m.name`),
  exactly('plugin_name_exact', sql`m.name`),
  exactly('plugin_version', sql`p.version`),
  exactly('plugin_type', sql`m.type`),
  equalNumber('workflow_id', sql`null::bigint`),
  oneOf('deletion_status', sql`i.deletion_status`, DELETION_STATUSES),
];

/** The fields of a request to run a plugin follow from the plugin, and so does their meaning. */
const run: Creation = {
  fields: requestFields(ANY_PLUGIN),
  prepare: async (call) => {
    const found = await findPlugin(call.services.database, call.path.id ?? 0);
    const fields = requestFields(found ?? ANY_PLUGIN);
    return {
      fields,
      read: async (body) => {
        const request = readInput(fields, body);
        return () => {
          if (found === null) throw new NotFound('plugin');
          return inTransaction(call, (acting) => runPlugin(acting, found, request, body.members));
        };
      },
    };
  },
};

async function runTemplate({ services, path }: Call): Promise<readonly string[]> {
  const found = await findPlugin(services.database, path.id ?? 0);
  const names: InputFields = requestFields(found ?? ANY_PLUGIN);
  return [...Object.keys(names), ...(found?.parameters.map(({ name }) => name) ?? [])];
}

const ofInstance = { within: { resource: instance, parameter: 'id' }, access: PUBLIC } as const;

export const instanceRoutes: readonly Route[] = [
  list({
    path: 'plugins/{id}/instances/',
    of: instance,
    within: { resource: plugin, parameter: 'id' },
    access: SIGNED_IN,
    where: ({ caller, path }) => sql`i.plugin_id = ${path('id')} and ${madeBy('i', caller)}`,
    order: NEWEST_INSTANCES_FIRST,
    links: [
      { rel: 'plugin', to: 'plugins/{id}/' },
      { rel: 'compute_resources', to: 'plugins/{id}/computeresources/' },
    ],
    create: run,
    template: runTemplate,
  }),
  list({
    path: 'plugins/instances/',
    of: instance,
    access: PUBLIC,
    where: ({ caller }) => listedInstances('i', caller),
    order: NEWEST_LISTED_INSTANCES_FIRST,
    links: [{ rel: 'plugins', to: 'plugins/' }],
    search: { filters: FILTERS },
    operations: { GET: 'all_plugins_instances_list' },
  }),
  item({
    path: 'plugins/instances/{id}/',
    of: instance,
    access: PUBLIC,
    change: change({
      rule: changeInstance,
      input: { title: text({ max: 100, blank: true }), status: text({ check: wantedStatusProblem }) },
      run: changeInstanceBy,
    }),
    remove: {
      rule: deleteInstance,
      inBackground: true,
      run: ({ transaction, path }) => requestInstanceDeletion(transaction, path.id ?? 0),
    },
  }),
  list({
    path: 'plugins/instances/{id}/descendants/',
    of: instance,
    ...ofInstance,
    where: ({ path }) => sql`i.id in (${treeOf(path('id'), () => sql`true`)})`,
    order: NEWEST_INSTANCES_FIRST,
  }),
  list({
    path: 'plugins/instances/{id}/parameters/',
    of: parameterValue,
    ...ofInstance,
    where: ({ path }) => sql`v.plugin_instance_id = ${path('id')}`,
    order: sql`${PARAMETER_TYPE_ORDER}, v.id`,
  }),
  ...PARAMETER_TYPES.map((type) =>
    item({ path: `plugins/${type}-parameter/{id}/`, of: parameterValueOf(type), access: PUBLIC }),
  ),
  list({
    path: 'plugins/instances/{id}/splits/',
    of: split,
    ...ofInstance,
    where: ({ path }) => sql`s.plugin_instance_id = ${path('id')}`,
    order: sql`s.creation_date desc, s.id desc`,
    links: [{ rel: 'plugin_inst', to: 'plugins/instances/{id}/' }],
    create: creation({
      rule: ownInstance,
      input: { filter: text({ max: 600, blank: true }), compute_resource_name: text({ max: 100, writeOnly: true }) },
      ask: prepareSplit,
    }),
  }),
  item({ path: 'plugins/instances/splits/{id}/', of: split, access: PUBLIC }),
];
