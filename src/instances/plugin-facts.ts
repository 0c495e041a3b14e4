/** What creating an instance needs to know of a plugin, read at once. */
import { type RawBuilder, sql } from 'kysely';
import type { ParameterType } from '../compute/command-line.ts';
import type { Queries } from '../database/database.ts';
import type { PluginLimits } from '../plugins/limits.ts';

export interface PluginParameter {
  readonly id: number;
  readonly name: string;
  readonly type: ParameterType;
  readonly optional: boolean;
}

/** A compute resource where the plugin is registered. */
export interface ComputeResource {
  readonly id: number;
  readonly name: string;
  readonly requiresCopyJob: boolean;
}

export interface PluginFacts extends PluginLimits {
  readonly id: number;
  readonly name: string;
  readonly type: 'fs' | 'ds' | 'ts';
  /** In the plugin's order. */
  readonly parameters: readonly PluginParameter[];
  /** The first one is taken when none is asked for. */
  readonly computeResources: readonly ComputeResource[];
}

async function findFirst(database: Queries, condition: RawBuilder<unknown>): Promise<PluginFacts | null> {
  const { rows } = await sql<PluginFacts>`
    select p.id, m.name, m.type, p.min_number_of_workers, p.max_number_of_workers, p.min_cpu_limit, p.max_cpu_limit,
      p.min_memory_limit, p.max_memory_limit, p.min_gpu_limit, p.max_gpu_limit,
      (select coalesce(json_agg(json_build_object('id', q.id, 'name', q.name, 'type', q.type, 'optional', q.optional)
          order by q.position), '[]')
        from plugin_parameter q where q.plugin_id = p.id) as parameters,
      (select coalesce(json_agg(json_build_object('id', c.id, 'name', c.name, 'requiresCopyJob', c.compute_requires_copy_job)
          order by c.id), '[]')
        from plugin_compute_resource pc join compute_resource c on c.id = pc.compute_resource_id
        where pc.plugin_id = p.id) as "computeResources"
    from plugin p join plugin_meta m on m.id = p.meta_id
    where ${condition} order by p.version desc, p.id desc limit 1`.execute(database);
  return rows[0] ?? null;
}

/** null: there is no such plugin. */
export function findPlugin(database: Queries, id: number): Promise<PluginFacts | null> {
  return findFirst(database, sql`p.id = ${id}::bigint`);
}

/** The newest version of a plugin, the first in lists; null: there is none. */
export function findNewestPlugin(database: Queries, name: string): Promise<PluginFacts | null> {
  return findFirst(database, sql`m.name = ${name}`);
}
