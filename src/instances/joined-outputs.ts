/**
 * What `ts` plugins are for: the outputs of several instances of a feed joined in one folder. Their programs do nothing; the
 * server copies the files (hard links where storage can) when the program has ended well.
 */
import { sql } from 'kysely';
import type { InputFile } from '../compute/engine.ts';
import type { Queries } from '../database/database.ts';
import { zippedInputs } from '../files/inputs.ts';
import type { Services } from '../services.ts';
import type { Instance } from './instance.ts';
import { placeLinks } from './link-bytes.ts';
import type { OutputFile, OutputLink } from './output-rows.ts';
import { type PathFilter, readFilters } from './path-filters.ts';
import type { Outputs } from './registration.ts';
import { RegistrationFailed } from './registration-error.ts';

interface Parent {
  readonly id: number;
  readonly outputPath: string;
  readonly filter: RegExp | null;
}

/** @throws {RegistrationFailed} */
export async function joinOutputs(services: Services, instance: Instance, folderPath: string): Promise<Outputs> {
  const values = await joinParameters(services.database, instance.id);
  const parents = await findParents(services.database, values);
  const files: OutputFile[] = [];
  const links: OutputLink[] = [];
  const taken = new Set<string>();
  for (const parent of parents) {
    for await (const input of reachable(services, instance, parent, folderPath)) {
      const path = values.groupByInstance ? `${parent.id}/${input.relativePath}` : input.relativePath;
      if (taken.has(path) || !passes(input, parent)) continue;
      taken.add(path);
      if (input.storagePath === null) {
        links.push({ path, target: input.content ?? '' });
      } else {
        await copy(services, input.storagePath, `${folderPath}/${path}`);
        files.push({ path, sizeBytes: input.sizeBytes });
      }
    }
  }
  await placeLinks(services.storage, folderPath, links);
  return { files, links };
}

interface JoinParameters {
  readonly ids: readonly number[];
  readonly filters: readonly PathFilter[];
  readonly groupByInstance: boolean;
}

async function joinParameters(database: Queries, instanceId: number): Promise<JoinParameters> {
  const { rows } = await sql<{ name: string; value: unknown }>`
    select p.name, v.value from plugin_instance_parameter v join plugin_parameter p on p.id = v.plugin_parameter_id
    where v.plugin_instance_id = ${instanceId}
      and p.name in ('plugininstances', 'filter', 'groupByInstance')`.execute(database);
  const values = new Map(rows.map(({ name, value }) => [name, value]));
  const ids = String(values.get('plugininstances') ?? '')
    .split(',')
    .filter((id) => id.trim() !== '');
  return {
    ids: [...new Set(ids.map(Number))],
    filters: parseFilters(String(values.get('filter') ?? '')),
    groupByInstance: values.get('groupByInstance') === true,
  };
}

function parseFilters(list: string): readonly PathFilter[] {
  try {
    return readFilters(list, 'filter');
  } catch (error) {
    throw new RegistrationFailed('', error instanceof Error ? error.message : String(error));
  }
}

/** @throws {RegistrationFailed} CODE05 when one of them has been deleted */
async function findParents(database: Queries, { ids, filters }: JoinParameters): Promise<readonly Parent[]> {
  if (ids.length === 0) return [];
  const rows = await database
    .selectFrom('plugin_instance')
    .innerJoin('folder', 'folder.id', 'plugin_instance.output_folder_id')
    .select(['plugin_instance.id', 'path'])
    .where('plugin_instance.id', 'in', ids)
    .execute();
  return ids.map((id, position) => {
    const row = rows.find((one) => one.id === id);
    if (row === undefined) throw new RegistrationFailed('CODE05', `the plugin instance ${id} has been deleted`);
    const filter = filters[position];
    return { id, outputPath: row.path, filter: filter === undefined || filter.text === '' ? null : filter.expression };
  });
}

/** All files of a parent, those behind its link files under their whole storage path, and the link files. */
function reachable(
  { database }: Services,
  { owner }: Instance,
  parent: Parent,
  folderPath: string,
): AsyncIterable<InputFile> {
  const caller = { role: owner.isAdministrator ? 'administrator' : 'user', id: owner.id } as const;
  return zippedInputs({ database, caller, inputPaths: [parent.outputPath], outputPath: folderPath });
}

/** Filters are searched for in the whole storage path. */
function passes(input: InputFile, { filter, outputPath }: Parent): boolean {
  return filter === null || filter.test(input.storagePath ?? `${outputPath}/${input.relativePath}`);
}

/** @throws {RegistrationFailed} CODE08, also where one parent has a folder in the place of another's file */
async function copy({ storage }: Services, from: string, to: string): Promise<void> {
  try {
    await storage.copy(from, to);
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    throw new RegistrationFailed('CODE08', `the file "${from}" could not be copied: ${reason}`);
  }
}
