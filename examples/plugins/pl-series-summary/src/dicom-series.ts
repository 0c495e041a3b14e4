/** Gathers the files of one DICOM series: what they have in common, and their images in order. */
import { type DicomFile, decimalsOf, frameDecimals, type SeriesFacts, seriesFacts } from './dicom.ts';
import { checkPixels, decodeFrame, pixelLayout, pixelSpacing, recommendedWindow } from './dicom-pixels.ts';
import { textOf } from './dicom-text.ts';
import { DamagedFile, UnsupportedPixels } from './errors.ts';
import { RunningStatistics, type Statistics } from './statistics.ts';
import { transferSyntaxName } from './transfer-syntax.ts';

/** Where one image of a series is to be found. */
export interface FrameAddress {
  readonly file: string;
  /** From 0. */
  readonly frame: number;
}

interface OrderedImage {
  readonly file: string;
  readonly frames: number;
  readonly instanceNumber: number;
  /** Direction cosines of rows and columns as text, and the distance along their normal in mm; null when not told. */
  readonly place: { readonly orientation: string; readonly distance: number } | null;
}

export interface ImageDescription {
  readonly matrix: { readonly columns: number; readonly rows: number };
  /** Millimetres; slice: between neighbouring slices, or their thickness. */
  readonly spacing: { readonly column: number | null; readonly row: number | null; readonly slice: number | null };
  readonly window: { readonly center: number; readonly width: number } | null;
  readonly photometricInterpretation: string;
  readonly bitsStored: number;
}

const PLANE_POSITION = 'x00209113';
const PLANE_ORIENTATION = 'x00209116';

export class DicomSeries {
  readonly facts: SeriesFacts;
  readonly transferSyntaxes = new Set<string>();
  objects = 0;
  images = 0;
  description: ImageDescription | null = null;
  /** Why images are not decoded, and how many. */
  readonly notDecoded = new Map<string, number>();
  readonly #statistics = new RunningStatistics();
  readonly #decodable: OrderedImage[] = [];

  constructor(facts: SeriesFacts) {
    this.facts = facts;
  }

  /** Takes one file in. @returns what is wrong with it, else null. */
  add(path: string, file: DicomFile): string | null {
    this.objects++;
    this.transferSyntaxes.add(transferSyntaxName(file.transferSyntax));
    try {
      this.#addImages(path, file);
      return file.problem;
    } catch (error) {
      if (error instanceof UnsupportedPixels) {
        this.#countNotDecoded(error.message);
        return file.problem;
      }
      if (!(error instanceof DamagedFile)) throw error;
      this.#countNotDecoded('damaged');
      return error.message;
    }
  }

  /** Of the rescaled values of all grey images. */
  get statistics(): Statistics | null {
    return this.#statistics.result();
  }

  /** All images that can be decoded: by place when they lie side by side, else by their number. */
  framesInOrder(): FrameAddress[] {
    const orientations = new Set(this.#decodable.map((image) => image.place?.orientation));
    const parallel = orientations.size === 1 && !orientations.has(undefined);
    const key = (image: OrderedImage) => (parallel && image.place ? image.place.distance : image.instanceNumber);
    const ordered = this.#decodable.toSorted((a, b) => key(a) - key(b) || a.instanceNumber - b.instanceNumber);
    return ordered.flatMap(({ file, frames }) => Array.from({ length: frames }, (_, frame) => ({ file, frame })));
  }

  #addImages(path: string, file: DicomFile): void {
    const layout = pixelLayout(file.dataSet);
    if (layout === null) return;
    this.images += layout.frames;
    this.description ??= describe(file, layout);
    checkPixels(file, layout);
    for (let frame = 0; frame < layout.frames; frame++) {
      const slice = decodeFrame(file, layout, frame);
      if (slice.kind === 'grey') this.#statistics.add(slice.values);
    }
    const instanceNumber = Number.parseInt(textOf(file.dataSet, 'x00200013'), 10);
    this.#decodable.push({
      file: path,
      frames: layout.frames,
      instanceNumber: Number.isNaN(instanceNumber) ? 0 : instanceNumber,
      place: placeOf(file),
    });
  }

  #countNotDecoded(reason: string): void {
    this.notDecoded.set(reason, (this.notDecoded.get(reason) ?? 0) + 1);
  }
}

/** The series of all files so far, by their UID. */
export class SeriesCollection {
  readonly #series = new Map<string, DicomSeries>();

  /** @returns what is wrong with the file, else null. @throws {DamagedFile} when it names no series. */
  add(path: string, file: DicomFile): string | null {
    const facts = seriesFacts(file.dataSet);
    const series = this.#series.get(facts.seriesInstanceUid) ?? new DicomSeries(facts);
    this.#series.set(facts.seriesInstanceUid, series);
    return series.add(path, file);
  }

  /** By study, then by series number. */
  inOrder(): DicomSeries[] {
    const collator = new Intl.Collator('en', { numeric: true });
    return [...this.#series.values()].toSorted(
      ({ facts: a }, { facts: b }) =>
        collator.compare(a.study.studyInstanceUid, b.study.studyInstanceUid) ||
        collator.compare(a.seriesNumber, b.seriesNumber) ||
        collator.compare(a.seriesInstanceUid, b.seriesInstanceUid),
    );
  }
}

function describe({ dataSet }: DicomFile, layout: NonNullable<ReturnType<typeof pixelLayout>>): ImageDescription {
  const [row = null, column = null] = pixelSpacing(dataSet, 0);
  const [between] = decimalsOf(dataSet, 'x00180088');
  const [thickness] = frameDecimals(dataSet, 0, 'x00289110', 'x00180050');
  return {
    matrix: { columns: layout.columns, rows: layout.rows },
    spacing: { column, row, slice: between ?? thickness ?? null },
    window: recommendedWindow(dataSet),
    photometricInterpretation: layout.photometricInterpretation,
    bitsStored: layout.bitsStored,
  };
}

function placeOf({ dataSet }: DicomFile): OrderedImage['place'] {
  const [x, y, z] = frameDecimals(dataSet, 0, PLANE_POSITION, 'x00200032');
  const [rowX, rowY, rowZ, columnX, columnY, columnZ] = frameDecimals(dataSet, 0, PLANE_ORIENTATION, 'x00200037');
  if (x === undefined || y === undefined || z === undefined || rowX === undefined || rowY === undefined) return null;
  if (rowZ === undefined || columnX === undefined || columnY === undefined || columnZ === undefined) return null;
  const normal = [rowY * columnZ - rowZ * columnY, rowZ * columnX - rowX * columnZ, rowX * columnY - rowY * columnX];
  const [normalX = 0, normalY = 0, normalZ = 0] = normal;
  const orientation = [rowX, rowY, rowZ, columnX, columnY, columnZ].map((cosine) => cosine.toFixed(3)).join(' ');
  return { orientation, distance: x * normalX + y * normalY + z * normalZ };
}
