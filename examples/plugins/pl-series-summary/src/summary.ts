/** What the plugin finds out, as written to `summary.json` and, a row a series or volume, to `summary.csv`. */

import type { SeriesFacts } from './dicom.ts';
import type { ImageDescription } from './dicom-series.ts';
import type { Statistics } from './statistics.ts';

export interface SeriesSummary extends Omit<SeriesFacts, 'patient'>, Partial<ImageDescription> {
  /** Folder of its pictures below `pictures/`. */
  readonly folder: string;
  /** Only when asked for. */
  readonly patient?: SeriesFacts['patient'];
  readonly transferSyntaxes: readonly string[];
  /** Files of the series. */
  readonly objects: number;
  /** Images in them, each frame counted. */
  readonly images: number;
  /** `decoded`, `none`, or what was not decoded and why. */
  readonly pixelData: string;
  readonly values: Statistics | null;
  readonly pictures: readonly string[];
}

export interface VolumeSummary {
  readonly folder: string;
  readonly file: string;
  readonly description: string;
  readonly matrix: readonly [number, number, number];
  readonly spacing: readonly [number, number, number];
  readonly volumes: number;
  readonly dataType: string;
  readonly values: Statistics | null;
  readonly pictures: readonly string[];
}

export interface Problem {
  readonly file: string;
  readonly problem: string;
}

export interface Summary {
  readonly plugin: { readonly name: string; readonly version: string };
  readonly series: readonly SeriesSummary[];
  readonly volumes: readonly VolumeSummary[];
  readonly problems: readonly Problem[];
  /** Files that are no images of a kind that the plugin knows. */
  readonly ignored: readonly string[];
}

type Cell = string | number | null | undefined;
type Row = readonly (readonly [column: string, value: Cell])[];

/** CSV as in RFC 4180. Both kinds of rows have the same columns. */
export function toCsv({ series, volumes }: Summary): string {
  const rows = [...series.map(seriesRow), ...volumes.map(volumeRow)];
  const columns = [...new Set(rows.flatMap((row) => row.map(([column]) => column)))];
  const lines = rows.map((row) => {
    const values = new Map(row);
    return columns.map((column) => quote(values.get(column))).join(',');
  });
  return [columns.join(','), ...lines, ''].join('\r\n');
}

function seriesRow(series: SeriesSummary): Row {
  return [
    ['kind', 'DICOM'],
    ['folder', series.folder],
    ['modality', series.modality],
    ['description', series.seriesDescription],
    ['images', series.images],
    ['columns', series.matrix?.columns],
    ['rows', series.matrix?.rows],
    ['slices', null],
    ['column_spacing_mm', series.spacing?.column],
    ['row_spacing_mm', series.spacing?.row],
    ['slice_spacing_mm', series.spacing?.slice],
    ['window_center', series.window?.center],
    ['window_width', series.window?.width],
    ...statisticsCells(series.values),
    ['pixel_data', series.pixelData],
    ['pictures', series.pictures.length],
    ['body_part', series.bodyPart],
    ['manufacturer', series.manufacturer],
    ['model', series.manufacturerModel],
    ['series_number', series.seriesNumber],
    ['series_instance_uid', series.seriesInstanceUid],
    ['study_date', series.study.studyDate],
    ['study_description', series.study.studyDescription],
    ['study_instance_uid', series.study.studyInstanceUid],
    ...(series.patient ? patientCells(series.patient) : []),
  ];
}

function volumeRow(volume: VolumeSummary): Row {
  return [
    ['kind', 'NIfTI'],
    ['folder', volume.folder],
    ['description', volume.description],
    ['images', volume.volumes],
    ['columns', volume.matrix[0]],
    ['rows', volume.matrix[1]],
    ['slices', volume.matrix[2]],
    ['column_spacing_mm', volume.spacing[0]],
    ['row_spacing_mm', volume.spacing[1]],
    ['slice_spacing_mm', volume.spacing[2]],
    ...statisticsCells(volume.values),
    ['pixel_data', 'decoded'],
    ['pictures', volume.pictures.length],
  ];
}

function statisticsCells(statistics: Statistics | null): Row {
  return [
    ['minimum', statistics?.minimum],
    ['maximum', statistics?.maximum],
    ['mean', statistics?.mean],
  ];
}

function patientCells(patient: SeriesFacts['patient']): Row {
  return [
    ['patient_name', patient.name],
    ['patient_id', patient.id],
    ['patient_birth_date', patient.birthDate],
    ['patient_sex', patient.sex],
    ['accession_number', patient.accessionNumber],
  ];
}

/** Texts from files may begin like a formula, which spreadsheets would run: an apostrophe keeps them texts. */
function quote(value: Cell): string {
  if (value === null || value === undefined) return '';
  const text = typeof value === 'string' && /^[=+\-@\t\r]/.test(value) ? `'${value}` : String(value);
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}
