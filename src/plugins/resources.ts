/**
 * The catalogue of what can be run and where, as the wire shows it (`plugins.md`).
 *
 * Terminology
 *   plugin           one version of a program in a container image, with its parameters and limits
 *   meta             what all versions of a plugin share: name, type, authors, category…
 *   parameter        an argument of the program, declared by the version's descriptor
 *   compute resource a place where plugins run; a plugin is registered for one or more of them
 *   descriptor       the JSON document that a plugin is registered from
 *   owner            who registered a plugin, or whom an administrator gave it
 */
import { sql } from 'kysely';
import { anyone } from '../access/caller.ts';
import { data, describedAsWritable, type Field, link, resource } from '../hypermedia/resource.ts';

const NO_STRANGERS = { hiddenFrom: ['anonymous'] } as const;

const COMPUTE_RESOURCE = {
  name: 'compute resource',
  from: sql`compute_resource c`,
  alias: 'c',
  url: 'computeresources/{}/',
  read: anyone,
};

const COMPUTE_RESOURCE_FIELDS: readonly Field[] = [
  data('creation_date', 'date-time'),
  data('modification_date', 'date-time'),
  data('name', 'string', { maxLength: 100 }),
  data('compute_url', 'uri', { maxLength: 300, ...NO_STRANGERS }),
  data('compute_auth_url', 'uri', { maxLength: 350, blank: true, ...NO_STRANGERS }),
  data('compute_innetwork', 'boolean'),
  data('compute_requires_copy_job', 'boolean'),
  data('compute_requires_upload_job', 'boolean'),
  data('description', 'string', { maxLength: 600 }),
  data('max_job_exec_seconds', 'integer'),
];

/** What an answer shows in place of a stored secret. */
export const MASK = '********';

const masked = (column: string) => sql`case when ${sql.ref(`c.${column}`)} is null then '' else ${sql.lit(MASK)} end`;

export const computeResource = resource({
  ...COMPUTE_RESOURCE,
  component: 'ComputeResource',
  fields: COMPUTE_RESOURCE_FIELDS,
});

/** The same, as the administration API shows it: all that can be set, secrets masked. One component describes both. */
export const administeredComputeResource = resource({
  ...COMPUTE_RESOURCE,
  component: 'ComputeResource',
  fields: [
    ...COMPUTE_RESOURCE_FIELDS,
    data('compute_user', 'string', { maxLength: 32 }),
    data('compute_password', 'string', { sql: masked('compute_password_encrypted') }),
    data('compute_auth_token', 'string', { sql: masked('compute_auth_token_encrypted') }),
  ],
});

export const pluginMeta = resource({
  name: 'plugin meta',
  component: 'PluginMeta',
  from: sql`plugin_meta m`,
  alias: 'm',
  url: 'plugins/metas/{}/',
  read: anyone,
  fields: [
    data('creation_date', 'date-time'),
    data('modification_date', 'date-time'),
    ...describedAsWritable(
      data('name', 'string', { maxLength: 100 }),
      data('title', 'string', { maxLength: 400 }),
      data('stars', 'integer'),
      data('public_repo', 'uri', { maxLength: 300, blank: true }),
      data('license', 'string', { maxLength: 50 }),
      data('type', 'string', { enumeration: 'PluginType' }),
      data('icon', 'uri', { maxLength: 300, blank: true }),
      data('category', 'string', { maxLength: 100 }),
      data('authors', 'string', { maxLength: 200 }),
      data('documentation', 'string', { maxLength: 800 }),
    ),
    link('plugins', 'plugins/metas/{}/plugins/'),
  ],
});

const ofMeta = (name: string) => ({ sql: sql.ref(`m.${name}`) });

export const plugin = resource({
  name: 'plugin',
  component: 'Plugin',
  from: sql`plugin p join plugin_meta m on m.id = p.meta_id left join account o on o.id = p.owner_id`,
  alias: 'p',
  url: 'plugins/{}/',
  read: anyone,
  fields: [
    data('creation_date', 'date-time'),
    data('name', 'string', { maxLength: 100, ...ofMeta('name') }),
    ...describedAsWritable(
      data('version', 'string', { maxLength: 10 }),
      data('dock_image', 'string', { maxLength: 500 }),
    ),
    data('public_repo', 'uri', { maxLength: 300, ...ofMeta('public_repo') }),
    data('icon', 'uri', { maxLength: 300, ...ofMeta('icon') }),
    data('type', 'string', { enumeration: 'PluginType', ...ofMeta('type') }),
    data('stars', 'integer', ofMeta('stars')),
    data('authors', 'string', { maxLength: 200, ...ofMeta('authors') }),
    data('title', 'string', { maxLength: 400, ...ofMeta('title') }),
    data('category', 'string', { maxLength: 100, ...ofMeta('category') }),
    ...describedAsWritable(data('description', 'string', { maxLength: 2000 })),
    data('documentation', 'string', { maxLength: 800, ...ofMeta('documentation') }),
    data('license', 'string', { maxLength: 50, ...ofMeta('license') }),
    ...describedAsWritable(
      data('execshell', 'string', { maxLength: 50 }),
      data('selfpath', 'string', { maxLength: 512 }),
      data('selfexec', 'string', { maxLength: 50 }),
      data('min_number_of_workers', 'integer', { nullable: true }),
      data('max_number_of_workers', 'integer', { nullable: true }),
      data('min_cpu_limit', 'integer', { nullable: true, description: 'Millicores.' }),
      data('max_cpu_limit', 'integer', { nullable: true, description: 'Millicores.' }),
      data('min_memory_limit', 'integer', { nullable: true, description: 'MiB.' }),
      data('max_memory_limit', 'integer', { nullable: true, description: 'MiB.' }),
      data('min_gpu_limit', 'integer', { nullable: true }),
      data('max_gpu_limit', 'integer', { nullable: true }),
    ),
    data('owner_username', 'string', { nullable: true, sql: sql`o.username` }),
    link('meta', 'plugins/metas/{}/', { sql: sql`p.meta_id` }),
    link('parameters', 'plugins/{}/parameters/'),
    link('instances', 'plugins/{}/instances/'),
    link('compute_resources', 'plugins/{}/computeresources/'),
    link('owner', 'users/{}/', { nullable: true, sql: sql`p.owner_id` }),
  ],
});

/** The same, as the administration API describes it: with what a plugin is registered from. */
export const administeredPlugin = { ...plugin, component: 'PluginAdmin' };

export const pluginParameter = resource({
  name: 'plugin parameter',
  component: 'PluginParameter',
  from: sql`plugin_parameter a`,
  alias: 'a',
  url: 'plugins/parameters/{}/',
  read: anyone,
  fields: [
    ...describedAsWritable(
      data('name', 'string', { maxLength: 50 }),
      data('type', 'string', { enumeration: 'PluginParameterType' }),
      data('optional', 'boolean'),
    ),
    data('default', 'scalar', { nullable: true, sql: sql`a.default_value` }),
    ...describedAsWritable(
      data('flag', 'string', { maxLength: 52 }),
      data('short_flag', 'string', { maxLength: 52 }),
      data('action', 'string', { maxLength: 20 }),
      data('help', 'string'),
      data('ui_exposed', 'boolean'),
    ),
    link('plugin', 'plugins/{}/', { sql: sql`a.plugin_id` }),
  ],
});
