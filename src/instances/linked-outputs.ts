/** What the server adds to an instance with `unextpath` parameters: a link file for each path, instead of a copy. */
import { sql } from 'kysely';
import type { CallerSql } from '../access/caller.ts';
import { readFile, readFolder, readLinkFile } from '../access/files.ts';
import type { Queries } from '../database/database.ts';
import { folderOf, linkFileName, nameOf } from '../files/paths.ts';
import type { Services } from '../services.ts';
import type { Instance } from './instance.ts';
import { readPathList } from './job-paths.ts';
import { placeLinks } from './link-bytes.ts';
import type { OutputLink } from './output-rows.ts';
import type { Outputs } from './registration.ts';
import { RegistrationFailed } from './registration-error.ts';

/** Paths that have gone meanwhile make no link. @throws {RegistrationFailed} CODE17 for one that may not be linked */
export async function linkOutputs(services: Services, instance: Instance, folderPath: string): Promise<Outputs> {
  const { database, storage } = services;
  const targets = [...new Set(await unextractedPaths(database, instance.id))];
  if (targets.length === 0) return { files: [], links: [] };
  const holding = targets.find((target) => folderPath === target || folderPath.startsWith(`${target}/`));
  if (holding !== undefined) {
    throw new RegistrationFailed(
      'CODE17',
      `the path "${holding}" holds the output folder, which cannot link to itself`,
    );
  }
  const caller = { role: instance.owner.isAdministrator ? 'administrator' : 'user', id: instance.owner.id } as const;
  const links: OutputLink[] = [];
  for (const { path, readable } of await findPaths(database, caller, targets)) {
    if (!readable) throw new RegistrationFailed('CODE17', `the path "${path}" may no longer be read by the owner`);
    links.push({ path: linkFileName(path), target: path });
  }
  await placeLinks(storage, folderPath, links);
  return { files: [], links };
}

async function unextractedPaths(database: Queries, instanceId: number): Promise<string[]> {
  const { rows } = await sql<{ value: string }>`
    select v.value #>> '{}' as value from plugin_instance_parameter v
      join plugin_parameter p on p.id = v.plugin_parameter_id
    where v.plugin_instance_id = ${instanceId} and p.type = 'unextpath' order by p.position`.execute(database);
  return rows.flatMap(({ value }) => readPathList(value)).filter((path) => path !== '');
}

/** Which of the paths lead to something, in the order given, and whether the caller may read it. */
async function findPaths(
  database: Queries,
  caller: CallerSql,
  paths: readonly string[],
): Promise<readonly { readonly path: string; readonly readable: boolean }[]> {
  const { rows } = await sql<{ path: string; readable: boolean }>`
    select given.path, bool_or(found.readable) as readable
    from unnest(${paths}::text[], ${paths.map(folderOf)}::text[], ${paths.map(nameOf)}::text[])
        with ordinality as given(path, folder_path, name, position)
      cross join lateral (
        select ${readFolder('d', caller)} as readable from folder d where d.path = given.path
        union all
        select ${readFile('x', caller)} from folder d join file x on x.folder_id = d.id
          where d.path = given.folder_path and x.name = given.name
        union all
        select ${readLinkFile('l', caller)} from folder d join link_file l on l.folder_id = d.id
          where d.path = given.folder_path and l.name = given.name
      ) found
    group by given.path, given.position order by given.position`.execute(database);
  return rows;
}
