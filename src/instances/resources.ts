/**
 * Plugin instances and what belongs to them, as the wire shows them (`instances.md`).
 *
 * Terminology
 *   plugin instance  one run of a plugin; a node of its feed's tree
 *   previous         its parent in the tree; instances of `ts` plugins wait for other parents as well
 *   parameter        a value that the instance was given for one of the plugin's parameters
 *   split            a request to branch the tree below an instance, one branch for each filter
 */
import { type RawBuilder, sql } from 'kysely';
import { readInstance, readWithInstance } from '../access/instances.ts';
import type { ParameterType } from '../compute/command-line.ts';
import {
  type DataField,
  type DataType,
  data,
  describedAsWritable,
  type Field,
  link,
  type Resource,
  resource,
} from '../hypermedia/resource.ts';

/** In the order of lists. */
export const PARAMETER_TYPES: readonly ParameterType[] = ['unextpath', 'path', 'string', 'integer', 'float', 'boolean'];

// Every table but the first is joined from the left by a unique key, so that what a statement does not ask for costs nothing.
const FROM = sql`plugin_instance i
  left join plugin p on p.id = i.plugin_id
  left join plugin_meta m on m.id = p.meta_id
  left join account u on u.id = i.owner_id
  left join compute_resource c on c.id = i.compute_resource_id
  left join folder o on o.id = i.output_folder_id`;

/** How far the job has come, as JSON text (`instances.md` section 9). */
const SUMMARY = sql`json_build_object(
  'pushPath', json_build_object('status', i.pushed),
  'pullPath', json_build_object('status', i.pulled),
  'compute', json_build_object(
    'submit', json_build_object('status',
      i.job_status <> '' or i.status in ('started', 'uploading', 'registeringFiles', 'finishedSuccessfully', 'finishedWithError')),
    'return', json_build_object(
      'status', i.job_status in ('undefined', 'finishedSuccessfully', 'finishedWithError'),
      'job_status', i.job_status,
      'job_logs', i.job_logs)))::text`;

const IDENTITY: readonly Field[] = [
  ...describedAsWritable(data('title', 'string', { maxLength: 100 })),
  data('previous_id', 'integer', { absentWhenNull: true, readOnly: true }),
  ...describedAsWritable(
    data('compute_resource_name', 'string', { sql: sql`c.name`, absentWhenNull: true, maxLength: 100 }),
  ),
  data('plugin_id', 'integer'),
  data('plugin_name', 'string', { sql: sql`m.name` }),
  data('plugin_version', 'string', { sql: sql`p.version` }),
  data('plugin_type', 'string', { sql: sql`m.type`, enumeration: 'PluginType' }),
  data('feed_id', 'integer'),
  data('start_date', 'date-time'),
  data('end_date', 'date-time'),
  data('output_path', 'string', { sql: sql`coalesce(o.path, '')` }),
  data('status', 'string', { enumeration: 'PluginInstanceStatus', readOnly: true }),
  data('active', 'boolean'),
];

const LIMITS: readonly Field[] = [
  data('owner_username', 'string', { sql: sql`u.username` }),
  ...describedAsWritable(
    data('cpu_limit', 'integer', { nullable: true, description: 'Millicores.' }),
    data('memory_limit', 'integer', { nullable: true, description: 'Mebibytes.' }),
    data('number_of_workers', 'integer', { nullable: true }),
    data('gpu_limit', 'integer', { nullable: true }),
  ),
  data('size', 'int64', { sql: sql`i.size_bytes`, description: 'Bytes of all output files.' }),
  data('error_code', 'string', { maxLength: 7 }),
  ...describedAsWritable(data('deletion_status', 'string', { enumeration: 'DeletionStatusEnum' })),
];

const DELETION_ERROR = describedAsWritable(data('deletion_error', 'string'));

const OUTPUT_FOLDER = link('output_folder', 'filebrowser/{}/', { sql: sql`i.output_folder_id`, nullable: true });

const INSTANCE = {
  name: 'plugin instance',
  from: FROM,
  alias: 'i',
  url: 'plugins/instances/{}/',
  read: readInstance,
} as const;

export const instance = resource({
  ...INSTANCE,
  component: 'PluginInstance',
  fields: [
    ...IDENTITY,
    data('summary', 'any', { sql: SUMMARY, description: 'How far the job has come: JSON text.' }),
    data('raw', 'string', { description: 'Last answer of the compute resource: base64 of zlib-compressed JSON.' }),
    ...LIMITS,
    ...describedAsWritable(data('deletion_requested_at', 'date-time', { nullable: true })),
    ...DELETION_ERROR,
    link('previous', 'plugins/instances/{}/', { sql: sql`i.previous_id`, nullable: true }),
    OUTPUT_FOLDER,
    link('feed', '{}/', { sql: sql`i.feed_id` }),
    link('plugin', 'plugins/{}/', { sql: sql`i.plugin_id` }),
    link('workflow', 'pipelines/workflows/{}/', { sql: sql`null::bigint`, nullable: true }),
    link('compute_resource', 'computeresources/{}/', { sql: sql`i.compute_resource_id`, nullable: true }),
    link('descendants', 'plugins/instances/{}/descendants/'),
    link('files', 'plugins/instances/{}/files/'),
    link('parameters', 'plugins/instances/{}/parameters/'),
    link('splits', 'plugins/instances/{}/splits/'),
  ],
});

/** What clients that draw a feed's tree ask for again and again: without the long texts. */
export const instanceOfFeed = resource({
  ...INSTANCE,
  component: 'PartialPluginInstance',
  fields: [...IDENTITY, ...LIMITS, ...DELETION_ERROR, OUTPUT_FOLDER],
});

const PARAMETER_VALUE = {
  from: sql`plugin_instance_parameter v join plugin_parameter q on q.id = v.plugin_parameter_id`,
  alias: 'v',
  url: 'plugins/{}/',
  urlValue: sql`q.type || '-parameter/' || v.id`,
  read: readWithInstance,
};

const parameterValueFields = (...value: readonly DataField[]): readonly Field[] => [
  data('param_name', 'string', { sql: sql`q.name` }),
  ...value,
  data('type', 'string', { sql: sql`q.type`, enumeration: 'PluginParameterType' }),
  link('plugin_inst', 'plugins/instances/{}/', { sql: sql`v.plugin_instance_id` }),
  link('plugin_param', 'plugins/parameters/{}/', { sql: sql`v.plugin_parameter_id` }),
];

/** The values of all types; the type stands in the address. */
export const parameterValue = resource({
  ...PARAMETER_VALUE,
  name: 'parameter',
  component: 'GenericParameter',
  fields: parameterValueFields(data('value', 'scalar')),
});

const DESCRIPTIONS: Readonly<Record<ParameterType, readonly [component: string, value: DataType]>> = {
  unextpath: ['UnextpathParameter', 'string'],
  path: ['PathParameter', 'string'],
  string: ['StrParameter', 'string'],
  integer: ['IntParameter', 'integer'],
  float: ['FloatParameter', 'number'],
  boolean: ['BoolParameter', 'boolean'],
};

export function parameterValueOf(type: ParameterType): Resource {
  const [component, value] = DESCRIPTIONS[type];
  return resource({
    ...PARAMETER_VALUE,
    name: `${type} parameter`,
    component,
    where: sql`q.type = ${sql.lit(type)}`,
    fields: parameterValueFields(...describedAsWritable(data('value', value))),
  });
}

/** The place of each type in lists, in the order above. */
export const PARAMETER_TYPE_ORDER: RawBuilder<unknown> = sql`array_position(array[${sql.join(
  PARAMETER_TYPES.map((type) => sql.lit(type)),
)}], q.type)`;

export const split = resource({
  name: 'split',
  component: 'PluginInstanceSplit',
  from: sql`plugin_instance_split s`,
  alias: 's',
  url: 'plugins/instances/splits/{}/',
  read: readWithInstance,
  fields: [
    data('creation_date', 'date-time'),
    data('filter', 'string', { maxLength: 600 }),
    data('plugin_inst_id', 'integer', { sql: sql`s.plugin_instance_id` }),
    data('created_plugin_inst_ids', 'string', { sql: sql`array_to_string(s.created_plugin_instance_ids, ',')` }),
    link('plugin_inst', 'plugins/instances/{}/', { sql: sql`s.plugin_instance_id` }),
  ],
});
