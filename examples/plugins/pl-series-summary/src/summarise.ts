/** The plugin's work: reads everything below a folder, draws pictures, and writes the summary. */
import { readFile, writeFile } from 'node:fs/promises';
import { basename, join } from 'node:path';
import type { Options } from './command-line.ts';
import { descriptor } from './descriptor.ts';
import { isMediaDirectory, readDicom } from './dicom.ts';
import { decodeFrame, pixelLayout } from './dicom-pixels.ts';
import { type DicomSeries, SeriesCollection } from './dicom-series.ts';
import { DamagedFile } from './errors.ts';
import { kindOf, listFiles } from './input.ts';
import { readNifti, type Volume } from './nifti.ts';
import { type GreyRange, windowRange } from './picture.ts';
import { FolderNames, type NumberedSlice, spreadEvenly, writePictures } from './pictures.ts';
import { RunningStatistics } from './statistics.ts';
import { type Problem, type SeriesSummary, type Summary, toCsv, type VolumeSummary } from './summary.ts';

/** Damaged files become problems in the summary. @throws when the folders cannot be read or written. */
export async function summarise(
  inputFolder: string,
  outputFolder: string,
  options: Options,
  log: (line: string) => void,
): Promise<Summary> {
  const run = new Run(inputFolder, outputFolder, options, log);
  for (const file of await listFiles(inputFolder)) await run.take(file);
  const summary = await run.finish();
  await writeFile(join(outputFolder, 'summary.json'), `${JSON.stringify(summary, null, 2)}\n`);
  await writeFile(join(outputFolder, 'summary.csv'), toCsv(summary));
  return summary;
}

class Run {
  readonly #inputFolder: string;
  readonly #outputFolder: string;
  readonly #options: Options;
  readonly #log: (line: string) => void;
  readonly #series = new SeriesCollection();
  readonly #folders = new FolderNames();
  readonly #volumes: VolumeSummary[] = [];
  readonly #problems: Problem[] = [];
  readonly #ignored: string[] = [];

  constructor(inputFolder: string, outputFolder: string, options: Options, log: (line: string) => void) {
    this.#inputFolder = inputFolder;
    this.#outputFolder = outputFolder;
    this.#options = options;
    this.#log = log;
  }

  async take(file: string): Promise<void> {
    try {
      const path = join(this.#inputFolder, file);
      const kind = await kindOf(path);
      if (kind === 'dicom') this.#takeDicom(file, await readFile(path));
      else if (kind === 'nifti') await this.#takeVolume(file, await readFile(path));
      else this.#ignored.push(file);
    } catch (error) {
      if (!(error instanceof DamagedFile || isFileSystemError(error))) throw error;
      this.#report(file, error.message);
    }
  }

  async finish(): Promise<Summary> {
    const series: SeriesSummary[] = [];
    for (const each of this.#series.inOrder()) series.push(await this.#summariseSeries(each));
    return {
      plugin: { name: descriptor.name, version: descriptor.version },
      series,
      volumes: this.#volumes,
      problems: this.#problems,
      ignored: this.#ignored,
    };
  }

  #takeDicom(file: string, bytes: Uint8Array): void {
    const dicom = readDicom(bytes);
    if (isMediaDirectory(dicom.dataSet)) {
      this.#ignored.push(file);
      return;
    }
    const problem = this.#series.add(file, dicom);
    if (problem !== null) this.#report(file, problem);
  }

  async #takeVolume(file: string, bytes: Uint8Array): Promise<void> {
    const volume = await readNifti(bytes);
    const statistics = new RunningStatistics();
    statistics.add(volume.values());
    const folder = this.#folders.next(basename(file).replace(/\.nii(\.gz)?$/i, ''));
    const { matrix, spacing, volumes, dataType, description } = volume;
    const pictures = await this.#draw(folder, this.#volumeSlices(volume), volume.displayRange);
    const values = statistics.result();
    this.#volumes.push({ folder, file, description, matrix, spacing, volumes, dataType, values, pictures });
    this.#log(`${folder}: NIfTI, ${matrix.join(' x ')} voxels, ${volumes} volume(s), ${pictures.length} picture(s)`);
  }

  async #summariseSeries(series: DicomSeries): Promise<SeriesSummary> {
    const { patient, ...facts } = series.facts;
    const folder = this.#folders.next([facts.seriesNumber, facts.modality, facts.seriesDescription].join(' '));
    const window = series.description?.window;
    const range = window ? windowRange(window.center, window.width) : null;
    const pictures = await this.#draw(folder, await this.#seriesSlices(series), range);
    this.#log(`${folder}: DICOM ${facts.modality}, ${series.images} image(s), ${pictures.length} picture(s)`);
    return {
      folder,
      ...facts,
      ...(this.#options.identifiers && { patient }),
      ...series.description,
      transferSyntaxes: [...series.transferSyntaxes],
      objects: series.objects,
      images: series.images,
      pixelData: pixelDataText(series),
      values: series.statistics,
      pictures,
    };
  }

  async #draw(folder: string, slices: readonly NumberedSlice[], recommended: GreyRange | null): Promise<string[]> {
    return writePictures(this.#outputFolder, folder, slices, this.#options.window ?? recommended);
  }

  #volumeSlices(volume: Volume): NumberedSlice[] {
    const { axis, slices, pictures } = this.#options;
    if (!pictures) return [];
    return spreadEvenly(volume.countSlices(axis), slices).map((index) => ({ index, slice: volume.slice(axis, index) }));
  }

  /** Reads the chosen files again: keeping every image of a series in memory would not do. */
  async #seriesSlices(series: DicomSeries): Promise<NumberedSlice[]> {
    if (!this.#options.pictures) return [];
    const frames = series.framesInOrder();
    const slices: NumberedSlice[] = [];
    for (const index of spreadEvenly(frames.length, this.#options.slices)) {
      const address = frames[index];
      if (!address) continue;
      const dicom = readDicom(await readFile(join(this.#inputFolder, address.file)));
      const layout = pixelLayout(dicom.dataSet);
      if (layout) slices.push({ index, slice: decodeFrame(dicom, layout, address.frame) });
    }
    return slices;
  }

  #report(file: string, problem: string): void {
    this.#problems.push({ file, problem });
    this.#log(`problem: ${file}: ${problem}`);
  }
}

function pixelDataText(series: DicomSeries): string {
  if (series.notDecoded.size === 0) return series.images === 0 ? 'none' : 'decoded';
  const reasons = [...series.notDecoded].map(([reason, count]) => (count === 1 ? reason : `${count} x ${reason}`));
  const everything = [...series.notDecoded.values()].reduce((sum, count) => sum + count, 0) === series.objects;
  return `${everything ? 'not' : 'partly'} decoded (${reasons.join('; ')})`;
}

function isFileSystemError(error: unknown): error is NodeJS.ErrnoException {
  return error instanceof Error && 'syscall' in error;
}
