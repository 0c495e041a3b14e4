/**
 * Reads DICOM files: with or without the part 10 header, explicit or implicit VR, either byte order.
 * Tags are written `xGGGGEEEE`, as dicom-parser does.
 */
import dicomParser, { type DataSet } from 'dicom-parser';
import { textOf } from './dicom-text.ts';
import { DamagedFile } from './errors.ts';
import { EXPLICIT_LITTLE_ENDIAN, IMPLICIT_LITTLE_ENDIAN } from './transfer-syntax.ts';

export interface DicomFile {
  readonly dataSet: DataSet;
  readonly transferSyntax: string;
  /** What is wrong with a file of which at least the beginning could be read. */
  readonly problem: string | null;
}

/** What a series and its study say of themselves, as in its first file. */
export interface SeriesFacts {
  readonly seriesInstanceUid: string;
  readonly seriesNumber: string;
  readonly seriesDescription: string;
  readonly modality: string;
  readonly bodyPart: string;
  readonly manufacturer: string;
  readonly manufacturerModel: string;
  readonly study: {
    readonly studyInstanceUid: string;
    readonly studyDate: string;
    readonly studyDescription: string;
  };
  readonly patient: {
    readonly name: string;
    readonly id: string;
    readonly birthDate: string;
    readonly sex: string;
    readonly accessionNumber: string;
  };
}

const PREFIX_OFFSET = 128;
const TRANSFER_SYNTAX = 'x00020010';
const SHARED_FUNCTIONAL_GROUPS = 'x52009229';
const PER_FRAME_FUNCTIONAL_GROUPS = 'x52009230';

/** Whether the first bytes of a file are those of a DICOM file. */
export function isDicom(head: Uint8Array): boolean {
  return hasPart10Header(head) || bareTransferSyntax(head) !== null;
}

/** @throws {DamagedFile} when not even a series can be told from the file. */
export function readDicom(bytes: Uint8Array): DicomFile {
  const bare = hasPart10Header(bytes) ? null : bareTransferSyntax(bytes);
  try {
    const dataSet = dicomParser.parseDicom(bytes, bare === null ? {} : { TransferSyntaxUID: bare });
    return { dataSet, transferSyntax: bare ?? textOf(dataSet, TRANSFER_SYNTAX), problem: null };
  } catch (thrown) {
    const problem = `the file is damaged or ends early (${reasonOf(thrown)})`;
    if (!isParseFailure(thrown)) throw new DamagedFile(problem);
    // What was read until the failure lacks the header, which is in order when the failure came after it.
    const transferSyntax = bare ?? textOf(dicomParser.readPart10Header(bytes), TRANSFER_SYNTAX);
    return { dataSet: thrown.dataSet, transferSyntax, problem };
  }
}

/** A directory of a medium (DICOMDIR) is about other files and belongs to no series. */
export function isMediaDirectory(dataSet: DataSet): boolean {
  return textOf(dataSet, 'x00020002') === '1.2.840.10008.1.3.10';
}

/** @throws {DamagedFile} when the file names no series. */
export function seriesFacts(dataSet: DataSet): SeriesFacts {
  const text = (tag: string) => textOf(dataSet, tag);
  const seriesInstanceUid = text('x0020000e');
  if (seriesInstanceUid === '') throw new DamagedFile('the file names no series (0020,000E)');
  return {
    seriesInstanceUid,
    seriesNumber: text('x00200011'),
    seriesDescription: text('x0008103e'),
    modality: text('x00080060'),
    bodyPart: text('x00180015'),
    manufacturer: text('x00080070'),
    manufacturerModel: text('x00081090'),
    study: { studyInstanceUid: text('x0020000d'), studyDate: text('x00080020'), studyDescription: text('x00081030') },
    patient: {
      name: text('x00100010'),
      id: text('x00100020'),
      birthDate: text('x00100030'),
      sex: text('x00100040'),
      accessionNumber: text('x00080050'),
    },
  };
}

/** Decimal values of an element; empty when it is absent or one of them is not a number. */
export function decimalsOf(dataSet: DataSet, tag: string): number[] {
  const values = textOf(dataSet, tag)
    .split('\\')
    .map((value) => (value.trim() === '' ? Number.NaN : Number(value)));
  return values.every(Number.isFinite) ? values : [];
}

/**
 * Decimal values that hold for one frame: from the frame's own functional group, else the shared one, else the file.
 * Enhanced multi-frame objects keep them in groups (PS3.3 C.7.6.16), older ones at the top.
 */
export function frameDecimals(dataSet: DataSet, frame: number, group: string, tag: string): number[] {
  const perFrame = dataSet.elements[PER_FRAME_FUNCTIONAL_GROUPS]?.items?.[frame]?.dataSet;
  const shared = dataSet.elements[SHARED_FUNCTIONAL_GROUPS]?.items?.[0]?.dataSet;
  for (const groups of [perFrame, shared]) {
    const item = groups?.elements[group]?.items?.[0]?.dataSet;
    const values = item ? decimalsOf(item, tag) : [];
    if (values.length > 0) return values;
  }
  return decimalsOf(dataSet, tag);
}

function hasPart10Header(bytes: Uint8Array): boolean {
  return [0x44, 0x49, 0x43, 0x4d].every((letter, index) => bytes[PREFIX_OFFSET + index] === letter);
}

/** Older files begin with the first element of group 0008 at once: its form tells the transfer syntax. */
function bareTransferSyntax(bytes: Uint8Array): string | null {
  const [group, zero, element = 0xff, high] = bytes;
  if (group !== 0x08 || zero !== 0 || element > 0x18 || high !== 0) return null;
  const vr = String.fromCharCode(bytes[4] ?? 0, bytes[5] ?? 0);
  if (/^(AE|CS|DA|DT|IS|LO|SH|SQ|TM|UI|UL)$/.test(vr)) return EXPLICIT_LITTLE_ENDIAN;
  const hasShortLength = (bytes[5] ?? 1) === 0 && (bytes[6] ?? 1) === 0 && (bytes[7] ?? 1) === 0;
  return hasShortLength ? IMPLICIT_LITTLE_ENDIAN : null;
}

function reasonOf(thrown: unknown): string {
  const reason = isParseFailure(thrown) ? thrown.exception : thrown;
  const words = reason instanceof Error ? reason.message : String(reason);
  return words.replace(/^dicomParser[.:]\w+: /, '');
}

/** dicom-parser throws a text, or an object with the reason and what it had read until then. */
function isParseFailure(thrown: unknown): thrown is { exception: unknown; dataSet: DataSet } {
  return typeof thrown === 'object' && thrown !== null && 'exception' in thrown && 'dataSet' in thrown;
}
