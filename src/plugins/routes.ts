/** Routes of the catalogue: public to read, changed through the administration API (`plugins.md` sections 2, 3 and 5). */
import { type RawBuilder, sql } from 'kysely';
import { anyone } from '../access/caller.ts';
import {
  contains,
  equalNumber,
  exactly,
  type Filter,
  parseInteger,
  since,
  special,
  until,
} from '../hypermedia/filters.ts';
import { item, list, PUBLIC, type Route, type Search, STAFF } from '../hypermedia/routes.ts';
import { pluginChange, pluginCreation } from './administration.ts';
import { computeResourceChange, computeResourceCreation, removeComputeResource } from './compute-resources.ts';
import { type InstanceRemoval, removePlugin } from './removal.ts';
import {
  administeredComputeResource,
  administeredPlugin,
  computeResource,
  plugin,
  pluginMeta,
  pluginParameter,
} from './resources.ts';

/** Objects that are related to one with the id that the filter gives. */
const relatedTo = (name: string, related: (id: unknown) => RawBuilder<unknown>): Filter =>
  special(name, 'integer', parseInteger, (value) => related(sql`${value}::bigint`));

const computeResourceSearch: Search = {
  filters: [
    equalNumber('id', sql`c.id`),
    contains('name', sql`c.name`),
    exactly('name_exact', sql`c.name`),
    contains('description', sql`c.description`),
    relatedTo(
      'plugin_id',
      (id) => sql`c.id in (select r.compute_resource_id from plugin_compute_resource r where r.plugin_id = ${id})`,
    ),
  ],
};

const metaSearch: Search = {
  filters: [
    equalNumber('id', sql`m.id`),
    contains('name', sql`m.name`),
    exactly('name_exact', sql`m.name`),
    contains('title', sql`m.title`),
    exactly('public_repo', sql`m.public_repo`),
    contains('category', sql`m.category`),
    exactly('type', sql`m.type`),
    contains('authors', sql`m.authors`),
    since('min_creation_date', sql`m.creation_date`),
    until('max_creation_date', sql`m.creation_date`),
    contains('name_title_category', sql`m.name`, sql`m.title`, sql`m.category`),
    contains('name_authors_category', sql`m.name`, sql`m.authors`, sql`m.category`),
  ],
};

const META_ORDER = sql`m.type, m.creation_date desc, m.id desc`;
/** `1.10` as the numbers 1, 10; versions are made of digits and dots. */
const VERSION_NUMBERS = sql`array_replace(string_to_array(p.version, '.'), '', '0')::bigint[]`;

const pluginSearch: Search = {
  filters: [
    equalNumber('id', sql`p.id`),
    contains('name', sql`m.name`),
    exactly('name_exact', sql`m.name`),
    exactly('version', sql`p.version`),
    exactly('dock_image', sql`p.dock_image`),
    exactly('type', sql`m.type`),
    contains('category', sql`m.category`),
    since('min_creation_date', sql`p.creation_date`),
    until('max_creation_date', sql`p.creation_date`),
    contains('title', sql`m.title`),
    exactly('public_repo', sql`m.public_repo`),
    contains('description', sql`p.description`),
    contains('name_title_category', sql`m.name`, sql`m.title`, sql`m.category`),
    relatedTo(
      'compute_resource_id',
      (id) => sql`p.id in (select r.plugin_id from plugin_compute_resource r where r.compute_resource_id = ${id})`,
    ),
  ],
  sort: {
    parameter: 'sort',
    orders: {
      version: sql`${META_ORDER}, p.version, p.id`,
      '-version': sql`${META_ORDER}, p.version desc, p.id desc`,
      creation_date: sql`${META_ORDER}, p.creation_date, p.id`,
      '-creation_date': sql`${META_ORDER}, p.creation_date desc, p.id desc`,
      version_number: sql`${META_ORDER}, ${VERSION_NUMBERS}, p.id`,
      '-version_number': sql`${META_ORDER}, ${VERSION_NUMBERS} desc, p.id desc`,
    },
  },
};

/** Versions compare as text, as clients of the reference expect; `sort=-version_number` compares them as numbers. */
export const PLUGIN_ORDER = sql`${META_ORDER}, p.version desc, p.id desc`;

const toFeeds = { rel: 'feeds', to: '' };
const ofPlugin = { resource: plugin, parameter: 'id' };

const publicRoutes: readonly Route[] = [
  list({
    path: 'computeresources/',
    of: computeResource,
    access: PUBLIC,
    order: sql`c.id`,
    links: [toFeeds],
    search: computeResourceSearch,
  }),
  item({ path: 'computeresources/{id}/', of: computeResource, access: PUBLIC }),
  list({
    path: 'plugins/metas/',
    of: pluginMeta,
    access: PUBLIC,
    order: META_ORDER,
    links: [toFeeds, { rel: 'plugins', to: 'plugins/' }],
    search: metaSearch,
  }),
  item({ path: 'plugins/metas/{id}/', of: pluginMeta, access: PUBLIC }),
  list({
    path: 'plugins/metas/{id}/plugins/',
    of: plugin,
    within: { resource: pluginMeta, parameter: 'id' },
    access: PUBLIC,
    where: ({ path }) => sql`p.meta_id = ${path('id')}`,
    order: PLUGIN_ORDER,
    links: [{ rel: 'meta', to: 'plugins/metas/{id}/' }],
  }),
  list({
    path: 'plugins/',
    of: plugin,
    access: PUBLIC,
    order: PLUGIN_ORDER,
    links: [toFeeds, { rel: 'plugin_metas', to: 'plugins/metas/' }],
    search: pluginSearch,
  }),
  item({ path: 'plugins/{id}/', of: plugin, access: PUBLIC }),
  list({
    path: 'plugins/{id}/parameters/',
    of: pluginParameter,
    within: ofPlugin,
    access: PUBLIC,
    where: ({ path }) => sql`a.plugin_id = ${path('id')}`,
    order: sql`a.position`,
    links: [{ rel: 'plugin', to: 'plugins/{id}/' }],
  }),
  item({ path: 'plugins/parameters/{id}/', of: pluginParameter, access: PUBLIC }),
  list({
    path: 'plugins/{id}/computeresources/',
    of: computeResource,
    within: ofPlugin,
    access: PUBLIC,
    where: ({ path }) =>
      sql`c.id in (select r.compute_resource_id from plugin_compute_resource r where r.plugin_id = ${path('id')})`,
    order: sql`c.id`,
    links: [{ rel: 'plugin', to: 'plugins/{id}/' }],
  }),
];

const adminRoutes = (removeInstances: InstanceRemoval): readonly Route[] => [
  list({
    area: 'admin',
    path: '',
    of: administeredPlugin,
    access: STAFF,
    order: PLUGIN_ORDER,
    links: [
      { rel: 'compute_resources', to: 'admin:computeresources/' },
      { rel: 'groups', to: 'groups/' },
    ],
    create: pluginCreation,
  }),
  item({
    area: 'admin',
    path: '{id}/',
    of: administeredPlugin,
    access: STAFF,
    template: ['compute_names'],
    change: pluginChange,
    remove: { rule: anyone, run: (call) => removePlugin(call, removeInstances) },
  }),
  list({
    area: 'admin',
    path: 'computeresources/',
    of: administeredComputeResource,
    access: STAFF,
    order: sql`c.id`,
    create: computeResourceCreation,
  }),
  item({
    area: 'admin',
    path: 'computeresources/{id}/',
    of: administeredComputeResource,
    access: STAFF,
    change: computeResourceChange,
    remove: { rule: anyone, run: removeComputeResource },
  }),
];

/** @param removeInstances what goes with a plugin that is removed */
export function catalogueRoutes(removeInstances: InstanceRemoval): readonly Route[] {
  return [...publicRoutes, ...adminRoutes(removeInstances)];
}
