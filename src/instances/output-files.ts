/**
 * Makes what a program left in its output folder ready for the tree: clean names, no link files of its own making, bytes
 * flushed. Done again after a crash, it finds the names that it gave and changes nothing.
 */
import { open } from 'node:fs/promises';
import { PATH_LIMIT_CHARACTERS } from '../files/paths.ts';
import type { Storage } from '../storage/storage.ts';
import { planOutputs } from './output-names.ts';
import type { OutputFile } from './output-rows.ts';
import { RegistrationFailed } from './registration-error.ts';

/** Files flushed at once: enough for the disk to put them in order, few enough for the open-file limit. */
const FLUSHED_AT_ONCE = 16;

/**
 * @param paths of the files below the folder, as the engine lists them
 * @throws {RegistrationFailed}
 */
export async function prepareOutputs(
  storage: Storage,
  folderPath: string,
  paths: readonly string[],
): Promise<OutputFile[]> {
  if (paths.length === 0) return [];
  const kept: string[] = [];
  for (const action of planOutputs(paths)) {
    if (action.kind === 'delete') await removeOutput(storage, `${folderPath}/${action.from}`, action.refused);
    if (action.kind === 'rename') await renameOutput(storage, folderPath, action.from, action.path);
    if (action.kind !== 'delete') kept.push(requireShort(folderPath, action.path));
  }
  const sizes = await sizesBelow(storage, folderPath);
  const files = kept.map((path) => {
    const sizeBytes = sizes.get(path);
    if (sizeBytes === undefined) throw new RegistrationFailed('CODE14', `the output file "${path}" is not in storage`);
    return { path, sizeBytes };
  });
  await flush(storage, folderPath, kept);
  return files;
}

/** Longer paths are known to no client. */
function requireShort(folderPath: string, path: string): string {
  if (`${folderPath}/${path}`.length <= PATH_LIMIT_CHARACTERS) return path;
  const reason = `the path of the output file "${path.slice(0, 100)}…" is longer than ${PATH_LIMIT_CHARACTERS} characters`;
  throw new RegistrationFailed('CODE06', reason);
}

async function renameOutput(storage: Storage, folderPath: string, from: string, to: string): Promise<void> {
  try {
    await storage.move(`${folderPath}/${from}`, `${folderPath}/${to}`);
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    throw new RegistrationFailed('CODE07', `the output file "${from}" could not be renamed to "${to}": ${reason}`);
  }
}

async function removeOutput(storage: Storage, path: string, refused: boolean): Promise<void> {
  try {
    await storage.remove(path);
  } catch (error) {
    if (!refused) throw error;
    const reason = error instanceof Error ? error.message : String(error);
    throw new RegistrationFailed('CODE07', `the program made a link file, which could not be removed: ${reason}`);
  }
}

async function sizesBelow(storage: Storage, folderPath: string): Promise<Map<string, number>> {
  const sizes = new Map<string, number>();
  for await (const { path, sizeBytes } of storage.list(folderPath)) {
    sizes.set(path.slice(folderPath.length + 1), sizeBytes);
  }
  return sizes;
}

/** Programs do not flush what they write; a row must not outlive its bytes when the machine stops. */
async function flush(storage: Storage, folderPath: string, paths: readonly string[]): Promise<void> {
  const folders = new Set<string>([folderPath]);
  for (const path of paths) {
    for (let end = path.lastIndexOf('/'); end > 0; end = path.lastIndexOf('/', end - 1)) {
      folders.add(`${folderPath}/${path.slice(0, end)}`);
    }
  }
  const queue = [...paths.map((path) => `${folderPath}/${path}`), ...folders].values();
  await Promise.all(
    Array.from({ length: FLUSHED_AT_ONCE }, async () => {
      for (const path of queue) await flushOne(storage.localPath(path));
    }),
  );
}

async function flushOne(localPath: string | null): Promise<void> {
  if (localPath === null) return;
  await using handle = await open(localPath, 'r');
  await handle.sync();
}
