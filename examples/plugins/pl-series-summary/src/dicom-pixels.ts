/** Decodes uncompressed pixel data of DICOM files (PS3.3 C.7.6.3, PS3.5 section 8). */
import type { DataSet } from 'dicom-parser';
import { type DicomFile, decimalsOf, frameDecimals } from './dicom.ts';
import { textOf } from './dicom-text.ts';
import { DamagedFile, UnsupportedPixels } from './errors.ts';
import type { ColourSlice, GreySlice, Slice } from './picture.ts';
import { EXPLICIT_BIG_ENDIAN, holdsPlainPixels, transferSyntaxName } from './transfer-syntax.ts';

/** How the pixels of one file are laid out. */
export interface PixelLayout {
  readonly columns: number;
  readonly rows: number;
  readonly frames: number;
  readonly samplesPerPixel: number;
  readonly photometricInterpretation: string;
  readonly bitsAllocated: number;
  readonly bitsStored: number;
  readonly highBit: number;
  readonly signed: boolean;
  /** Red, green and blue in planes of their own instead of pixel by pixel. */
  readonly planar: boolean;
}

const PIXEL_DATA = 'x7fe00010';
const OTHER_PIXEL_DATA = ['x7fe00008', 'x7fe00009'];
const PIXEL_MEASURES = 'x00289110';
const PIXEL_VALUE_TRANSFORMATION = 'x00289145';
const FRAME_VOI_LUT = 'x00289132';

/** Null for objects without pixels, such as plans. @throws {DamagedFile} when the description is senseless. */
export function pixelLayout(dataSet: DataSet): PixelLayout | null {
  const hasPixels = [PIXEL_DATA, ...OTHER_PIXEL_DATA].some((tag) => dataSet.elements[tag] !== undefined);
  const rows = dataSet.uint16('x00280010') ?? 0;
  const columns = dataSet.uint16('x00280011') ?? 0;
  if (!hasPixels && rows === 0) return null;
  if (rows === 0 || columns === 0) throw new DamagedFile(`the image is ${columns} x ${rows} pixels`);
  const bitsAllocated = dataSet.uint16('x00280100') ?? 0;
  const bitsStored = dataSet.uint16('x00280101') ?? bitsAllocated;
  return {
    columns,
    rows,
    frames: numberOfFrames(dataSet),
    samplesPerPixel: dataSet.uint16('x00280002') ?? 1,
    photometricInterpretation: textOf(dataSet, 'x00280004') || 'MONOCHROME2',
    bitsAllocated,
    bitsStored,
    highBit: dataSet.uint16('x00280102') ?? bitsStored - 1,
    signed: dataSet.uint16('x00280103') === 1,
    planar: dataSet.uint16('x00280006') === 1,
  };
}

/** @throws {UnsupportedPixels | DamagedFile} */
export function checkPixels({ dataSet, transferSyntax }: DicomFile, layout: PixelLayout): void {
  if (!holdsPlainPixels(transferSyntax)) throw new UnsupportedPixels(transferSyntaxName(transferSyntax));
  const element = dataSet.elements[PIXEL_DATA];
  if (!element) {
    if (OTHER_PIXEL_DATA.some((tag) => dataSet.elements[tag])) throw new UnsupportedPixels('floating point');
    throw new DamagedFile('the pixel data are missing');
  }
  const { bitsAllocated, bitsStored, highBit, samplesPerPixel, photometricInterpretation } = layout;
  const grey = samplesPerPixel === 1 && photometricInterpretation.startsWith('MONOCHROME');
  const colour = samplesPerPixel === 3 && bitsAllocated === 8 && /^(RGB|YBR_FULL)$/.test(photometricInterpretation);
  if (!grey && !colour)
    throw new UnsupportedPixels(`${photometricInterpretation}, ${samplesPerPixel} x ${bitsAllocated} bit`);
  if (![1, 8, 16, 32].includes(bitsAllocated)) throw new UnsupportedPixels(`${bitsAllocated} bits a pixel`);
  if (bitsStored < 1 || bitsStored > bitsAllocated || highBit >= bitsAllocated || highBit + 1 < bitsStored) {
    throw new DamagedFile(
      `bits stored ${bitsStored} and high bit ${highBit} do not fit into ${bitsAllocated} bits allocated`,
    );
  }
  const needed = Math.ceil((sampleCount(layout) * layout.frames * bitsAllocated) / 8);
  const there = Math.min(element.length, dataSet.byteArray.length - element.dataOffset);
  if (there < needed) throw new DamagedFile(`the pixel data end early: ${Math.max(0, there)} of ${needed} bytes`);
}

/** Decodes one frame, counted from 0, of pixels that passed `checkPixels`. Grey values are rescaled (slope, intercept). */
export function decodeFrame(file: DicomFile, layout: PixelLayout, frame: number): Slice {
  const [rowSpacing = 1, columnSpacing = 1] = pixelSpacing(file.dataSet, frame);
  const plane = { columns: layout.columns, rows: layout.rows, rowSpacing, columnSpacing };
  if (layout.samplesPerPixel === 3) return { kind: 'colour', ...plane, samples: colourSamples(file, layout, frame) };
  const inverted = layout.photometricInterpretation === 'MONOCHROME1';
  return { kind: 'grey', ...plane, values: greyValues(file, layout, frame), inverted } satisfies GreySlice;
}

/** Millimetres between rows, then between columns; empty when not told. */
export function pixelSpacing(dataSet: DataSet, frame: number): number[] {
  const spacing = frameDecimals(dataSet, frame, PIXEL_MEASURES, 'x00280030');
  const detector = spacing.length === 2 ? spacing : decimalsOf(dataSet, 'x00181164');
  return detector.length === 2 && detector.every((value) => value > 0) ? detector : [];
}

/** The first window that the file recommends. */
export function recommendedWindow(dataSet: DataSet): { center: number; width: number } | null {
  const [center] = frameDecimals(dataSet, 0, FRAME_VOI_LUT, 'x00281050');
  const [width] = frameDecimals(dataSet, 0, FRAME_VOI_LUT, 'x00281051');
  return center === undefined || width === undefined || width < 1 ? null : { center, width };
}

function numberOfFrames(dataSet: DataSet): number {
  const text = textOf(dataSet, 'x00280008');
  if (text === '') return 1;
  if (!/^\d+$/.test(text) || Number(text) < 1) {
    throw new DamagedFile(`the number of frames (0028,0008) is '${text}', not a whole number of at least 1`);
  }
  return Number(text);
}

function sampleCount({ columns, rows, samplesPerPixel }: PixelLayout): number {
  return columns * rows * samplesPerPixel;
}

function greyValues(file: DicomFile, layout: PixelLayout, frame: number): Float32Array {
  const { dataSet } = file;
  const [slope = 1] = frameDecimals(dataSet, frame, PIXEL_VALUE_TRANSFORMATION, 'x00281053');
  const [intercept = 0] = frameDecimals(dataSet, frame, PIXEL_VALUE_TRANSFORMATION, 'x00281052');
  const readSample = sampleReader(file, layout);
  const first = frame * sampleCount(layout);
  const shift = layout.highBit + 1 - layout.bitsStored;
  const unusedBits = 32 - layout.bitsStored;
  return Float32Array.from({ length: sampleCount(layout) }, (_, index) => {
    const aligned = (readSample(first + index) >>> shift) << unusedBits;
    const stored = layout.signed ? aligned >> unusedBits : aligned >>> unusedBits;
    return stored * slope + intercept;
  });
}

/** Returns a function that reads the sample at an index as an unsigned integer of `bitsAllocated`. */
function sampleReader(
  { dataSet, transferSyntax }: DicomFile,
  { bitsAllocated }: PixelLayout,
): (index: number) => number {
  const { byteArray, elements } = dataSet;
  const start = elements[PIXEL_DATA]?.dataOffset ?? 0;
  const view = new DataView(byteArray.buffer, byteArray.byteOffset + start, byteArray.byteLength - start);
  const littleEndian = transferSyntax !== EXPLICIT_BIG_ENDIAN;
  // Big-endian files keep bytes in 16-bit words, so neighbours are swapped, unless the VR says that they are bytes.
  const swapped = !littleEndian && elements[PIXEL_DATA]?.vr !== 'OB';
  const byteAt = (index: number) => view.getUint8(swapped ? index ^ 1 : index);
  switch (bitsAllocated) {
    case 1:
      return (index) => (byteAt(index >> 3) >> (index & 7)) & 1;
    case 8:
      return byteAt;
    case 16:
      return (index) => view.getUint16(index * 2, littleEndian);
    default:
      return (index) => view.getUint32(index * 4, littleEndian);
  }
}

function colourSamples(file: DicomFile, layout: PixelLayout, frame: number): ColourSlice['samples'] {
  const readSample = sampleReader(file, layout);
  const pixels = layout.columns * layout.rows;
  const first = frame * sampleCount(layout);
  const samples = new Uint8ClampedArray(pixels * 3);
  for (let pixel = 0; pixel < pixels; pixel++) {
    const at = (channel: number) =>
      readSample(first + (layout.planar ? channel * pixels + pixel : pixel * 3 + channel));
    const colour = layout.photometricInterpretation === 'RGB' ? [at(0), at(1), at(2)] : toRgb(at(0), at(1), at(2));
    samples.set(colour, pixel * 3);
  }
  return new Uint8Array(samples.buffer);
}

/** YBR_FULL: ITU-R BT.601 with the full range, as PS3.3 C.7.6.3.1.2 gives it. */
function toRgb(luma: number, blue: number, red: number): [number, number, number] {
  const [cb, cr] = [blue - 128, red - 128];
  return [luma + 1.402 * cr, luma - 0.344136 * cb - 0.714136 * cr, luma + 1.772 * cb];
}
