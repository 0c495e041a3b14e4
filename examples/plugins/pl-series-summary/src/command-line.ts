/** Reads the command line `series-summary [arguments] inputdir outputdir` as the descriptor describes it. */
import { parseArgs } from 'node:util';
import { type Descriptor, descriptor, type Parameter } from './descriptor.ts';
import { type Axis, axes } from './nifti.ts';
import { type GreyRange, windowRange } from './picture.ts';

/** The command line is wrong; the message says what would be right. */
export class UsageError extends Error {
  override readonly name = 'UsageError';
}

export interface Options {
  readonly slices: number;
  readonly axis: Axis;
  /** Null: choose for each series. */
  readonly window: GreyRange | null;
  readonly pictures: boolean;
  readonly identifiers: boolean;
}

export type Command =
  | { readonly name: 'help' | 'version' | 'descriptor' }
  | {
      readonly name: 'run';
      readonly options: Options;
      readonly inputFolder: string;
      readonly outputFolder: string;
    };

const MOST_SLICES = 500;

/** @throws {UsageError} */
export function readCommandLine(words: readonly string[]): Command {
  const { values, positionals } = parseWords(words);
  if (values.get('help')) return { name: 'help' };
  if (values.get('version')) return { name: 'version' };
  if (values.get('json')) return { name: 'descriptor' };
  const [inputFolder, outputFolder, ...rest] = positionals;
  if (inputFolder === undefined || outputFolder === undefined || rest.length > 0) {
    throw new UsageError(`two folders are needed, input and output; ${positionals.length} given`);
  }
  const options: Options = {
    slices: readSlices(text(values, 'slices')),
    axis: readAxis(text(values, 'axis')),
    window: readWindow(text(values, 'window')),
    pictures: values.get('no_pictures') !== true,
    identifiers: values.get('identifiers') === true,
  };
  return { name: 'run', options, inputFolder, outputFolder };
}

export function helpText({ name, description, parameters }: Descriptor = descriptor): string {
  const lines = parameters.map((parameter) => {
    const value = parameter.type === 'bool' ? '' : ` ${parameter.type.toUpperCase()}`;
    const fallback = parameter.type === 'bool' ? '' : ` (default: ${parameter.default})`;
    return `  ${flagsOf(parameter).join(', ')}${value}\n      ${parameter.help}${fallback}`;
  });
  return [
    `${name}: ${description}`,
    '',
    'Usage: series-summary [arguments] inputdir outputdir',
    '',
    ...lines,
    '  --json\n      print the descriptor of the plugin',
    '  --version, --help',
    '',
  ].join('\n');
}

function flagsOf(parameter: Parameter): string[] {
  return [...new Set([parameter.short_flag, parameter.flag])];
}

type Values = ReadonlyMap<string, string | boolean>;

function parseWords(words: readonly string[]): { values: Values; positionals: string[] } {
  const options: Record<string, { type: 'string' | 'boolean'; short?: string }> = {
    help: { type: 'boolean', short: 'h' },
    version: { type: 'boolean', short: 'V' },
    json: { type: 'boolean' },
  };
  for (const parameter of descriptor.parameters) {
    const isShort = /^-[a-z]$/.test(parameter.short_flag);
    options[parameter.flag.slice(2)] = {
      type: parameter.type === 'bool' ? 'boolean' : 'string',
      ...(isShort && { short: parameter.short_flag.slice(1) }),
    };
  }
  try {
    const parsed = parseArgs({ args: joinValues(words), options, allowPositionals: true, strict: true });
    const values = new Map<string, string | boolean>();
    for (const parameter of descriptor.parameters) values.set(parameter.name, parameter.default.toString());
    for (const [flag, value] of Object.entries(parsed.values)) {
      const parameter = descriptor.parameters.find((each) => each.flag === `--${flag}`);
      if (typeof value === 'string' || typeof value === 'boolean') values.set(parameter?.name ?? flag, value);
    }
    return { values, positionals: parsed.positionals };
  } catch (error) {
    throw new UsageError(error instanceof Error ? error.message : String(error));
  }
}

/** Writes `--window -600,1500` as `--window=-600,1500`: `parseArgs` takes a value that begins with a dash for a flag. */
function joinValues(words: readonly string[]): string[] {
  const joined: string[] = [];
  for (let index = 0; index < words.length; index++) {
    const word = words[index] ?? '';
    if (word === '--') return [...joined, ...words.slice(index)];
    const parameter = descriptor.parameters.find((each) => each.type !== 'bool' && flagsOf(each).includes(word));
    const value = words[index + 1];
    if (parameter && value !== undefined) {
      joined.push(`${parameter.flag}=${value}`);
      index++;
    } else {
      joined.push(word);
    }
  }
  return joined;
}

function text(values: Values, name: string): string {
  return String(values.get(name) ?? '');
}

function readSlices(value: string): number {
  const slices = /^\d{1,3}$/.test(value) ? Number(value) : 0;
  if (slices < 1 || slices > MOST_SLICES) {
    throw new UsageError(`--slices is '${value}'; it must be a whole number from 1 to ${MOST_SLICES}`);
  }
  return slices;
}

function readAxis(value: string): Axis {
  const axis = axes.find((each) => each === value);
  if (axis === undefined) throw new UsageError(`--axis is '${value}'; it must be one of ${axes.join(', ')}`);
  return axis;
}

function readWindow(value: string): GreyRange | null {
  if (value === 'auto') return null;
  const [center = Number.NaN, width = Number.NaN, ...rest] = value
    .split(',')
    .map((part) => (part.trim() === '' ? Number.NaN : Number(part)));
  if (!Number.isFinite(center) || !Number.isFinite(width) || width < 1 || rest.length > 0) {
    throw new UsageError(
      `--window is '${value}'; it must be auto, or center,width with a width of at least 1 (such as 40,400)`,
    );
  }
  return windowRange(center, width);
}
