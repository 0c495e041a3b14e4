/** An instance as an engine sees it. */
import { sql } from 'kysely';
import { buildCommandLine, type StoredParameter } from '../compute/command-line.ts';
import type { Job } from '../compute/engine.ts';
import { buildEnvironment } from '../compute/environment.ts';
import type { Queries } from '../database/database.ts';
import { stagedInputs, zippedInputs } from '../files/inputs.ts';
import type { Instance } from '../instances/instance.ts';
import { readPathList } from '../instances/job-paths.ts';
import type { JobContext } from './context.ts';
import { createJobToken } from './job-token.ts';

export interface JobOptions {
  /** Whether the program is about to be submitted: only then is a token made for it. */
  readonly withToken: boolean;
}

export async function buildJob(
  context: JobContext,
  instance: Instance,
  outputPath: string,
  { withToken }: JobOptions,
): Promise<Job> {
  const { database } = context.services;
  const parameters = await loadParameters(database, instance.id);
  const { entrypoint, arguments: words, pathFlags } = buildCommandLine(instance.plugin, parameters);
  const inputPaths = await inputPathsOf(database, instance, parameters);
  const token = withToken && !context.engines.isBuiltin(instance) ? await createJobToken(database, instance) : '';
  const inputs = {
    database,
    caller: { role: instance.owner.isAdministrator ? 'administrator' : 'user', id: instance.owner.id },
    inputPaths,
    outputPath,
  } as const;
  return {
    id: instance.jobId,
    instanceId: instance.id,
    pluginType: instance.plugin.type,
    image: instance.plugin.image,
    entrypoint,
    arguments: words,
    pathFlags,
    environment: buildEnvironment({
      jobId: instance.jobId,
      instanceId: instance.id,
      owner: { username: instance.owner.username, email: instance.owner.email, token },
      previous:
        instance.previousId === null
          ? null
          : { instanceId: instance.previousId, jobId: `${instance.jobIdPrefix}${instance.previousId}` },
      workflow: null,
    }),
    ownerUsername: instance.owner.username,
    limits: instance.limits,
    maxExecutionSeconds: instance.maxExecutionSeconds,
    inputPaths,
    outputPath,
    stagedInputs: () => stagedInputs(inputs),
    zippedInputs: () => zippedInputs(inputs),
  };
}

async function loadParameters(database: Queries, instanceId: number): Promise<readonly StoredParameter[]> {
  const { rows } = await sql<StoredParameter>`
    select p.type, p.flag, p.action, v.value from plugin_instance_parameter v
      join plugin_parameter p on p.id = v.plugin_parameter_id
    where v.plugin_instance_id = ${instanceId} order by p.position`.execute(database);
  return rows;
}

/** The paths of all `path` parameters; for `ds` then the output folder of the parent. */
async function inputPathsOf(
  database: Queries,
  instance: Instance,
  parameters: readonly StoredParameter[],
): Promise<string[]> {
  const given = parameters
    .filter(({ type }) => type === 'path')
    .flatMap(({ value }) => readPathList(String(value)))
    .filter((path) => path !== '');
  if (instance.plugin.type !== 'ds' || instance.previousId === null) return given;
  const parent = await database
    .selectFrom('plugin_instance')
    .innerJoin('folder', 'folder.id', 'plugin_instance.output_folder_id')
    .select('path')
    .where('plugin_instance.id', '=', instance.previousId)
    .executeTakeFirst();
  return parent === undefined ? given : [...given, parent.path];
}
