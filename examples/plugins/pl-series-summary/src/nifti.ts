/**
 * Reads NIfTI-1 and NIfTI-2 volumes kept in one file (`.nii`, `.nii.gz`).
 * Format: https://nifti.nimh.nih.gov/nifti-1/documentation; world coordinates grow to the patient's right, front and head.
 */
import { promisify } from 'node:util';
import { constants, gunzip, gunzipSync } from 'node:zlib';
import { isNIFTI, NIFTI1, type NIFTI2, readHeader } from 'nifti-reader-js';
import { DamagedFile } from './errors.ts';
import type { GreySlice } from './picture.ts';

export const axes = ['axial', 'coronal', 'sagittal'] as const;
export type Axis = (typeof axes)[number];

export interface Volume {
  /** Voxels along i, j, k. */
  readonly matrix: readonly [number, number, number];
  /** Millimetres (or what the file's unit is) along i, j, k. */
  readonly spacing: readonly [number, number, number];
  /** How often the volume was taken: product of the dimensions after the third. */
  readonly volumes: number;
  readonly dataType: string;
  readonly description: string;
  /** The range to show that the file itself recommends. */
  readonly displayRange: { readonly low: number; readonly high: number } | null;
  /** Number of slices along an axis. */
  countSlices(axis: Axis): number;
  /** Slice of the first volume, the patient's right at the left (front at the left for sagittal ones), counted from foot, back or left. */
  slice(axis: Axis, index: number): GreySlice;
  /** All values of all volumes, scaled. */
  values(): Iterable<number>;
}

interface DataType {
  readonly name: string;
  readonly sizeBytes: number;
  readonly read: (view: DataView, offset: number, littleEndian: boolean) => number;
}

const dataTypes: Readonly<Record<number, DataType>> = {
  [NIFTI1.TYPE_UINT8]: { name: 'uint8', sizeBytes: 1, read: (view, offset) => view.getUint8(offset) },
  [NIFTI1.TYPE_INT8]: { name: 'int8', sizeBytes: 1, read: (view, offset) => view.getInt8(offset) },
  [NIFTI1.TYPE_INT16]: { name: 'int16', sizeBytes: 2, read: (view, offset, little) => view.getInt16(offset, little) },
  [NIFTI1.TYPE_UINT16]: {
    name: 'uint16',
    sizeBytes: 2,
    read: (view, offset, little) => view.getUint16(offset, little),
  },
  [NIFTI1.TYPE_INT32]: { name: 'int32', sizeBytes: 4, read: (view, offset, little) => view.getInt32(offset, little) },
  [NIFTI1.TYPE_UINT32]: {
    name: 'uint32',
    sizeBytes: 4,
    read: (view, offset, little) => view.getUint32(offset, little),
  },
  [NIFTI1.TYPE_FLOAT32]: {
    name: 'float32',
    sizeBytes: 4,
    read: (view, offset, little) => view.getFloat32(offset, little),
  },
  [NIFTI1.TYPE_FLOAT64]: {
    name: 'float64',
    sizeBytes: 8,
    read: (view, offset, little) => view.getFloat64(offset, little),
  },
};

const HEADER_BYTES = 540;

/** Whether the first bytes of a file are those of a NIfTI volume, compressed or not. */
export function isNifti(head: Uint8Array): boolean {
  return isNIFTI(toArrayBuffer(isGzip(head) ? inflateHead(head) : head), true);
}

/** @throws {DamagedFile} when the content is not a volume that can be read. */
export async function readNifti(bytes: Uint8Array): Promise<Volume> {
  const content = toArrayBuffer(isGzip(bytes) ? await inflate(bytes) : bytes);
  let header: NIFTI1 | NIFTI2;
  try {
    header = readHeader(content);
  } catch (error) {
    throw new DamagedFile(`the NIfTI header cannot be read: ${error instanceof Error ? error.message : error}`);
  }
  if (/^ni[12]/.test(header.magic))
    throw new DamagedFile('only the header: the image data lie in another file (.img), which is not supported');
  const type = dataTypes[header.datatypeCode];
  if (!type) throw new DamagedFile(`values of NIfTI data type ${header.datatypeCode} are not supported`);
  return new NiftiVolume(header, type, content);
}

class NiftiVolume implements Volume {
  readonly matrix: readonly [number, number, number];
  readonly spacing: readonly [number, number, number];
  readonly volumes: number;
  readonly dataType: string;
  readonly description: string;
  readonly displayRange: { low: number; high: number } | null;
  readonly #type: DataType;
  readonly #view: DataView;
  readonly #littleEndian: boolean;
  readonly #slope: number;
  readonly #intercept: number;
  /** For right, front and head: which voxel axis runs along it, and whether it runs the other way. */
  readonly #orientation: readonly [Direction, Direction, Direction];

  constructor(header: NIFTI1 | NIFTI2, type: DataType, content: ArrayBuffer) {
    const dimensions = header.dims.slice(1, 1 + Math.min(7, header.dims[0] ?? 0));
    if (dimensions.length < 2 || dimensions.some((length) => !Number.isSafeInteger(length) || length < 1)) {
      throw new DamagedFile(`the dimensions ${dimensions.join(' x ') || '(none)'} are not those of an image`);
    }
    const [columns = 1, rows = 1, slices = 1, ...others] = dimensions;
    this.matrix = [columns, rows, slices];
    this.volumes = others.reduce((product, length) => product * length, 1);
    const needed = columns * rows * slices * this.volumes * type.sizeBytes;
    const start = Math.max(0, Math.trunc(header.vox_offset));
    if (content.byteLength < start + needed) {
      throw new DamagedFile(`the image data end early: ${Math.max(0, content.byteLength - start)} of ${needed} bytes`);
    }
    this.spacing = [spacingOf(header, 1), spacingOf(header, 2), spacingOf(header, 3)];
    this.dataType = type.name;
    this.description = header.description.replaceAll('\0', '').trim();
    this.displayRange = header.cal_max > header.cal_min ? { low: header.cal_min, high: header.cal_max } : null;
    this.#type = type;
    this.#view = new DataView(content, start, needed);
    this.#littleEndian = header.littleEndian;
    // A slope of 0 (or not-a-number) means that the values are not scaled.
    const scaled = Number.isFinite(header.scl_slope) && header.scl_slope !== 0;
    this.#slope = scaled ? header.scl_slope : 1;
    this.#intercept = scaled && Number.isFinite(header.scl_inter) ? header.scl_inter : 0;
    this.#orientation = orientationOf(header);
  }

  countSlices(axis: Axis): number {
    return this.matrix[this.#across(axis).voxelAxis];
  }

  slice(axis: Axis, index: number): GreySlice {
    const [right, front, head] = this.#orientation;
    const horizontal = axis === 'sagittal' ? front : right;
    const vertical = axis === 'axial' ? front : head;
    const across = this.#across(axis);
    const columns = this.matrix[horizontal.voxelAxis];
    const rows = this.matrix[vertical.voxelAxis];
    const values = new Float32Array(columns * rows);
    const position: [number, number, number] = [0, 0, 0];
    position[across.voxelAxis] = along(across, index, this.matrix);
    let target = 0;
    for (let row = 0; row < rows; row++) {
      position[vertical.voxelAxis] = along(vertical, rows - 1 - row, this.matrix);
      for (let column = 0; column < columns; column++) {
        position[horizontal.voxelAxis] = along(horizontal, columns - 1 - column, this.matrix);
        values[target++] = this.#valueAt(position[0] + this.matrix[0] * (position[1] + this.matrix[1] * position[2]));
      }
    }
    return {
      kind: 'grey',
      columns,
      rows,
      columnSpacing: this.spacing[horizontal.voxelAxis],
      rowSpacing: this.spacing[vertical.voxelAxis],
      values,
      inverted: false,
    };
  }

  *values(): Iterable<number> {
    const count = this.#view.byteLength / this.#type.sizeBytes;
    for (let index = 0; index < count; index++) yield this.#valueAt(index);
  }

  #across(axis: Axis): Direction {
    const [right, front, head] = this.#orientation;
    return { axial: head, coronal: front, sagittal: right }[axis];
  }

  #valueAt(index: number): number {
    return (
      this.#type.read(this.#view, index * this.#type.sizeBytes, this.#littleEndian) * this.#slope + this.#intercept
    );
  }
}

type VoxelAxis = 0 | 1 | 2;

interface Direction {
  readonly voxelAxis: VoxelAxis;
  readonly reversed: boolean;
}

function along({ voxelAxis, reversed }: Direction, step: number, matrix: readonly [number, number, number]): number {
  return reversed ? matrix[voxelAxis] - 1 - step : step;
}

function spacingOf(header: NIFTI1 | NIFTI2, dimension: number): number {
  const spacing = Math.abs(header.pixDims[dimension] ?? 1);
  return Number.isFinite(spacing) && spacing > 0 ? spacing : 1;
}

/** Gives each world direction, in turn, the free voxel axis that runs most along it. */
function orientationOf({ affine }: NIFTI1 | NIFTI2): [Direction, Direction, Direction] {
  const free: VoxelAxis[] = [0, 1, 2];
  const take = (world: number): Direction => {
    const component = (voxelAxis: VoxelAxis) => affine[world]?.[voxelAxis] ?? 0;
    free.sort((a, b) => Math.abs(component(b)) - Math.abs(component(a)));
    const voxelAxis = free.shift() ?? 0;
    return { voxelAxis, reversed: component(voxelAxis) < 0 };
  };
  return [take(0), take(1), take(2)];
}

function isGzip(bytes: Uint8Array): boolean {
  return bytes[0] === 0x1f && bytes[1] === 0x8b;
}

/** What the beginning of a compressed file holds; empty when it is damaged. */
function inflateHead(head: Uint8Array): Uint8Array {
  try {
    return gunzipSync(head, { finishFlush: constants.Z_SYNC_FLUSH }).subarray(0, HEADER_BYTES);
  } catch {
    return new Uint8Array();
  }
}

async function inflate(bytes: Uint8Array): Promise<Uint8Array> {
  try {
    return await promisify(gunzip)(bytes);
  } catch (error) {
    throw new DamagedFile(`the compressed data are damaged: ${error instanceof Error ? error.message : error}`);
  }
}

function toArrayBuffer(bytes: Uint8Array): ArrayBuffer {
  const copy = new ArrayBuffer(bytes.byteLength);
  new Uint8Array(copy).set(bytes);
  return copy;
}
