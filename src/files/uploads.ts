/** Bringing bytes and rows of a file together. */
import { Readable } from 'node:stream';
import type { Services } from '../services.ts';
import { ensureFolder, insertFile, splitPath } from './tree.ts';

export interface SmallFile {
  readonly path: string;
  readonly ownerId: number;
  readonly content: string;
}

/** Stores a small file that the server itself writes. */
export async function putFile({ storage, database }: Services, { path, ownerId, content }: SmallFile): Promise<void> {
  const incoming = await storage.receive(Readable.from([Buffer.from(content)]));
  const { folder, name } = splitPath(path);
  await database.transaction().execute(async (transaction) => {
    const { id } = await ensureFolder(transaction, folder, ownerId);
    await insertFile(transaction, { folderId: id, name, ownerId, sizeBytes: incoming.sizeBytes, sha256: incoming.sha256, crc32: incoming.crc32 });
    await storage.place(incoming, path);
  });
}
