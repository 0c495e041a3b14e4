/**
 * Makes pictures of slices.
 *
 * Terminology
 *   slice    one plane of values as measured, with the size of its pixels
 *   picture  8-bit red, green, blue for the screen, with square pixels
 */
import { PNG } from 'pngjs';

interface Plane {
  readonly columns: number;
  readonly rows: number;
  /** Distance between the centres of neighbouring columns and rows; only their ratio matters here. */
  readonly columnSpacing: number;
  readonly rowSpacing: number;
}

/** Row by row from the top left. `inverted`: the lowest value is white (MONOCHROME1). */
export interface GreySlice extends Plane {
  readonly kind: 'grey';
  readonly values: Float32Array;
  readonly inverted: boolean;
}

/** Row by row from the top left: red, green, blue, each 0 to 255. */
export interface ColourSlice extends Plane {
  readonly kind: 'colour';
  readonly samples: Uint8Array;
}

export type Slice = GreySlice | ColourSlice;

/** Values at and below `low` are black, at and above `high` white. */
export interface GreyRange {
  readonly low: number;
  readonly high: number;
}

export interface Picture {
  readonly width: number;
  readonly height: number;
  readonly samples: Uint8Array;
}

const PICTURE_SIDE = 512;
const TILE_SIDE = 192;
const TILE_GAP = 4;
const BACKGROUND = 24;
/** Pixels longer than this in one direction (a scout line, a broken header) would make absurd pictures. */
const GREATEST_ASPECT = 16;

/** The linear window of DICOM PS3.3 C.11.2.1.2. */
export function windowRange(center: number, width: number): GreyRange {
  const middle = center - 0.5;
  const half = (width - 1) / 2;
  return { low: middle - half, high: middle + half };
}

/** The 1st to 99th percentile of the values of all slices, at most about 100,000 of which are looked at. */
export function percentileRange(slices: readonly Slice[]): GreyRange {
  const greys = slices.filter((slice) => slice.kind === 'grey');
  const total = greys.reduce((sum, slice) => sum + slice.values.length, 0);
  const step = Math.max(1, Math.floor(total / 100_000));
  const sample: number[] = [];
  for (const { values } of greys) {
    for (let index = 0; index < values.length; index += step) {
      const value = values[index] ?? Number.NaN;
      if (Number.isFinite(value)) sample.push(value);
    }
  }
  sample.sort((a, b) => a - b);
  const at = (share: number) => sample[Math.round(share * (sample.length - 1))] ?? 0;
  return { low: at(0.01), high: at(0.99) };
}

/** A slice as a picture with square pixels, enlarged (by a whole number) while it stays within 512 pixels. */
export function drawSlice(slice: Slice, range: GreyRange): Picture {
  const { width, height } = squareSize(slice);
  const enlargement = Math.max(1, Math.floor(PICTURE_SIDE / Math.max(width, height)));
  return resize(toScreen(slice, range), width * enlargement, height * enlargement);
}

/** All slices on one sheet, left to right and top to bottom. */
export function drawContactSheet(slices: readonly Slice[], range: GreyRange): Picture {
  const tiles = slices.map((slice) => {
    const { width, height } = squareSize(slice);
    const scale = TILE_SIDE / Math.max(width, height);
    const fitted = [width, height].map((side) => Math.max(1, Math.round(side * scale)));
    return resize(toScreen(slice, range), fitted[0] ?? 1, fitted[1] ?? 1);
  });
  const across = Math.ceil(Math.sqrt(tiles.length));
  const down = Math.ceil(tiles.length / across);
  const cellWidth = Math.max(...tiles.map((tile) => tile.width)) + TILE_GAP;
  const cellHeight = Math.max(...tiles.map((tile) => tile.height)) + TILE_GAP;
  const sheet = blank(across * cellWidth + TILE_GAP, down * cellHeight + TILE_GAP);
  for (const [index, tile] of tiles.entries()) {
    const left = TILE_GAP + (index % across) * cellWidth;
    const top = TILE_GAP + Math.floor(index / across) * cellHeight;
    paste(sheet, tile, left, top);
  }
  return sheet;
}

export function encodePng({ width, height, samples }: Picture): Buffer {
  const png = new PNG({ width, height });
  png.data = Buffer.from(samples);
  return PNG.sync.write(png, { inputColorType: 2, inputHasAlpha: false, colorType: 2 });
}

/** Stretches the coarser direction so that pixels become square. */
function squareSize({ columns, rows, columnSpacing, rowSpacing }: Plane): { width: number; height: number } {
  const aspect = rowSpacing / columnSpacing;
  if (!(aspect >= 1 / GREATEST_ASPECT && aspect <= GREATEST_ASPECT)) return { width: columns, height: rows };
  if (aspect >= 1) return { width: columns, height: Math.round(rows * aspect) };
  return { width: Math.round(columns / aspect), height: rows };
}

function toScreen(slice: Slice, { low, high }: GreyRange): Picture {
  const { columns: width, rows: height } = slice;
  if (slice.kind === 'colour') return { width, height, samples: slice.samples };
  const samples = new Uint8Array(width * height * 3);
  const scale = high > low ? 255 / (high - low) : Number.POSITIVE_INFINITY;
  for (const [index, value] of slice.values.entries()) {
    const position = Number.isFinite(value) && value > low ? Math.min(255, Math.round((value - low) * scale)) : 0;
    samples.fill(slice.inverted ? 255 - position : position, index * 3, index * 3 + 3);
  }
  return { width, height, samples };
}

/** Bilinear, with the centres of the corner pixels kept half a pixel inside. */
function resize(source: Picture, width: number, height: number): Picture {
  if (source.width === width && source.height === height) return source;
  const samples = new Uint8Array(width * height * 3);
  const columns = neighbours(source.width, width);
  const rows = neighbours(source.height, height);
  let target = 0;
  for (const row of rows) {
    for (const column of columns) {
      for (let channel = 0; channel < 3; channel++) {
        const at = (y: number, x: number) => source.samples[(y * source.width + x) * 3 + channel] ?? 0;
        const top = at(row.first, column.first) * (1 - column.share) + at(row.first, column.second) * column.share;
        const below = at(row.second, column.first) * (1 - column.share) + at(row.second, column.second) * column.share;
        samples[target++] = Math.round(top * (1 - row.share) + below * row.share);
      }
    }
  }
  return { width, height, samples };
}

/** For each of `to` positions the two of `from` positions beside it, and the second one's share. */
function neighbours(from: number, to: number): { first: number; second: number; share: number }[] {
  return Array.from({ length: to }, (_, index) => {
    const position = Math.min(from - 1, Math.max(0, ((index + 0.5) * from) / to - 0.5));
    const first = Math.floor(position);
    return { first, second: Math.min(from - 1, first + 1), share: position - first };
  });
}

function blank(width: number, height: number): Picture {
  return { width, height, samples: new Uint8Array(width * height * 3).fill(BACKGROUND) };
}

function paste(sheet: Picture, tile: Picture, left: number, top: number): void {
  for (let row = 0; row < tile.height; row++) {
    const line = tile.samples.subarray(row * tile.width * 3, (row + 1) * tile.width * 3);
    sheet.samples.set(line, ((top + row) * sheet.width + left) * 3);
  }
}
