/** The bytes of link files: a small text whose whole content is the path that it points to. */
import { Readable } from 'node:stream';
import { AlreadyThere } from '../storage/errors.ts';
import type { Storage } from '../storage/storage.ts';
import type { OutputLink } from './output-rows.ts';

/** Puts link files below a folder; one that a run before a crash has put there stays. */
export async function placeLinks(storage: Storage, folderPath: string, links: readonly OutputLink[]): Promise<void> {
  for (const { path, target } of links) {
    const incoming = await storage.receive(Readable.from([Buffer.from(target)]));
    try {
      await storage.place(incoming, `${folderPath}/${path}`);
    } catch (error) {
      await storage.discard(incoming);
      if (!(error instanceof AlreadyThere)) throw error;
    }
  }
}
