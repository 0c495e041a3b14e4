/**
 * Registration: the outputs of an instance become files of the tree, and the instance gets its final status in the
 * transaction of the last of them.
 */
import type { Transaction } from '../database/database.ts';
import type { Services } from '../services.ts';
import type { Instance } from './instance.ts';
import { joinOutputs } from './joined-outputs.ts';
import { linkOutputs } from './linked-outputs.ts';
import { prepareOutputs } from './output-files.ts';
import { type OutputFile, type OutputLink, type OutputPlace, writeFileRows, writeLinkRows } from './output-rows.ts';
import { moveTo } from './transitions.ts';

/** Rows in one statement. */
const BATCH = 1000;

export interface Outputs {
  readonly files: readonly OutputFile[];
  readonly links: readonly OutputLink[];
}

/**
 * Registers what lies in the output folder of an instance in `registeringFiles`; after success also what the server adds:
 * links to the paths of `unextpath` parameters, and the joined outputs of a `ts` plugin.
 * @param collected paths of the program's files below the output folder
 * @throws {RegistrationFailed}
 */
export async function registerOutputs(
  services: Services,
  instance: Instance,
  folderPath: string,
  collected: readonly string[],
  end: {
    readonly status: 'finishedSuccessfully' | 'finishedWithError';
    readonly pulled: boolean;
    readonly code: string;
  },
): Promise<void> {
  const succeeded = end.status === 'finishedSuccessfully';
  const own = { files: await prepareOutputs(services.storage, folderPath, collected), links: [] };
  const linked = succeeded ? await linkOutputs(services, instance, folderPath) : NOTHING;
  const joined =
    succeeded && instance.plugin.type === 'ts' ? await joinOutputs(services, instance, folderPath) : NOTHING;
  const outputs = merge([own, linked, joined]);
  await writeRows(services, instance, { folderPath, ownerId: instance.owner.id }, outputs, (transaction) =>
    moveTo(transaction, instance.id, 'registeringFiles', end.status, {
      pulled: end.pulled,
      error_code: end.code,
      size_bytes: sizeOf(outputs),
    }),
  );
}

const NOTHING: Outputs = { files: [], links: [] };

/** Of two with one path, the first counts. */
function merge(parts: readonly Outputs[]): Outputs {
  const taken = new Set<string>();
  const isNew = ({ path }: { readonly path: string }): boolean => !taken.has(path) && taken.add(path).has(path);
  return {
    files: parts.flatMap(({ files }) => files.filter(isNew)),
    links: parts.flatMap(({ links }) => links.filter(isNew)),
  };
}

function sizeOf({ files, links }: Outputs): number {
  const fileBytes = files.reduce((sum, { sizeBytes }) => sum + sizeBytes, 0);
  return links.reduce((sum, { target }) => sum + Buffer.byteLength(target), fileBytes);
}

/** Writes batch by batch, as long as the instance is still being registered; `finish` ends the last one. */
async function writeRows(
  { database }: Services,
  instance: Instance,
  place: OutputPlace,
  { files, links }: Outputs,
  finish: (transaction: Transaction) => Promise<boolean>,
): Promise<void> {
  const batches = [
    ...chunks(files).map((batch) => (transaction: Transaction) => writeFileRows(transaction, place, batch)),
    ...chunks(links).map((batch) => (transaction: Transaction) => writeLinkRows(transaction, place, batch)),
  ];
  const last = batches.pop();
  for (const batch of batches) {
    const goesOn = await database.transaction().execute(async (transaction) => {
      if (!(await moveTo(transaction, instance.id, 'registeringFiles', 'registeringFiles'))) return false;
      await batch(transaction);
      return true;
    });
    if (!goesOn) return;
  }
  await database.transaction().execute(async (transaction) => {
    // First, so that nobody cancels the instance between the rows and the end.
    if (await finish(transaction)) await last?.(transaction);
  });
}

function chunks<T>(items: readonly T[]): T[][] {
  return Array.from({ length: Math.ceil(items.length / BATCH) }, (_, index) =>
    items.slice(index * BATCH, (index + 1) * BATCH),
  );
}
