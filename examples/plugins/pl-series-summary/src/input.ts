/** Finds the images in a folder, whatever their files are called. */
import { open, readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { isDicom } from './dicom.ts';
import { isNifti } from './nifti.ts';

export type Kind = 'dicom' | 'nifti' | 'other';

/** Enough for the compressed header of a volume. */
const HEAD_BYTES = 4096;

/** Paths of all regular files below a folder, relative to it, in order; symbolic links are not followed. */
export async function listFiles(folder: string): Promise<string[]> {
  const files: string[] = [];
  const visit = async (path: string): Promise<void> => {
    for (const entry of await readdir(join(folder, path), { withFileTypes: true })) {
      const entryPath = join(path, entry.name);
      if (entry.isDirectory()) await visit(entryPath);
      else if (entry.isFile()) files.push(entryPath);
    }
  };
  await visit('');
  return files.sort();
}

export async function kindOf(path: string): Promise<Kind> {
  const file = await open(path);
  try {
    const { buffer, bytesRead } = await file.read(Buffer.alloc(HEAD_BYTES), 0, HEAD_BYTES, 0);
    const head = buffer.subarray(0, bytesRead);
    if (isDicom(head)) return 'dicom';
    return isNifti(head) ? 'nifti' : 'other';
  } finally {
    await file.close();
  }
}
