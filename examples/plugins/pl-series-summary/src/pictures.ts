/** Writes the pictures of one series or volume below `pictures/`. */
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { drawContactSheet, drawSlice, encodePng, type GreyRange, percentileRange, type Slice } from './picture.ts';

export interface NumberedSlice {
  /** Place in the series, from 0. */
  readonly index: number;
  readonly slice: Slice;
}

/** `wanted` numbers from 0 to `count` − 1, spread evenly. */
export function spreadEvenly(count: number, wanted: number): number[] {
  const chosen = Math.min(count, wanted);
  return Array.from({ length: chosen }, (_, index) => Math.floor(((index + 0.5) * count) / chosen));
}

/** @returns the paths of what was written, relative to the output folder. */
export async function writePictures(
  outputFolder: string,
  folder: string,
  slices: readonly NumberedSlice[],
  preferredRange: GreyRange | null,
): Promise<string[]> {
  if (slices.length === 0) return [];
  const range = preferredRange ?? percentileRange(slices.map(({ slice }) => slice));
  await mkdir(join(outputFolder, 'pictures', folder), { recursive: true });
  const written: string[] = [];
  const write = async (name: string, content: Buffer) => {
    const path = join('pictures', folder, name);
    await writeFile(join(outputFolder, path), content);
    written.push(path);
  };
  const sheet = drawContactSheet(
    slices.map(({ slice }) => slice),
    range,
  );
  await write('contact-sheet.png', encodePng(sheet));
  for (const { index, slice } of slices) {
    await write(`slice-${String(index + 1).padStart(4, '0')}.png`, encodePng(drawSlice(slice, range)));
  }
  return written;
}

/** Gives out folder names: letters, digits and dashes of a text, numbered when taken already. */
export class FolderNames {
  readonly #taken = new Set<string>();

  next(text: string): string {
    const plain = text
      .normalize('NFKD')
      .toLowerCase()
      .replace(/[^a-z0-9]+/g, '-')
      .replace(/^-+|-+$/g, '')
      .slice(0, 60);
    const base = plain || 'series';
    let name = base;
    for (let number = 2; this.#taken.has(name); number++) name = `${base}-${number}`;
    this.#taken.add(name);
    return name;
  }
}
