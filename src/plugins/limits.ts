/** Resource limits of plugins: how they may be written (`plugins.md` section 4.2), and what holds when they are not given. */
import { invalid } from '../hypermedia/errors.ts';
import type { Members } from '../hypermedia/input.ts';

/** The largest limit there is; it stands for "no limit". */
export const LARGEST_LIMIT = 2147483647;

type LimitName = 'number_of_workers' | 'cpu_limit' | 'memory_limit' | 'gpu_limit';

/** What each instance of a plugin may ask for: workers and GPUs by number, CPU in millicores, memory in MiB. */
export type PluginLimits = Readonly<Record<`min_${LimitName}` | `max_${LimitName}`, number>>;

function wholeNumber(value: unknown): number | null {
  return typeof value === 'number' && Number.isSafeInteger(value) ? value : null;
}

/** A number of things from an integer or a text of digits. null: neither of them. Whether it is allowed is not looked at. */
export function parseCount(value: unknown): number | null {
  return typeof value === 'string' && /^\d{1,15}$/.test(value) ? Number(value) : wholeNumber(value);
}

/** Millicores from an integer or a text such as `500m`. null: neither of them. Whether it is allowed is not looked at. */
export function parseCpuMillicores(value: unknown): number | null {
  if (typeof value !== 'string') return wholeNumber(value);
  const match = /^(\d{1,15})m$/.exec(value);
  return match ? Number(match[1]) : null;
}

/** MiB from an integer or a text such as `200Mi` or `2Gi`. null: neither of them. Whether it is allowed is not looked at. */
export function parseMemoryMebibytes(value: unknown): number | null {
  if (typeof value !== 'string') return wholeNumber(value);
  const match = /^(\d{1,12})(Mi|Gi)$/.exec(value);
  return match ? Number(match[1]) * (match[2] === 'Gi' ? 1024 : 1) : null;
}

interface LimitKind {
  readonly name: LimitName;
  readonly parse: (value: unknown) => number | null;
  /** No limit may be below this. */
  readonly least: number;
  readonly defaultMinimum: number;
  /** How it may be written, for people. */
  readonly form: string;
}

const WORKERS: LimitKind = {
  name: 'number_of_workers',
  parse: parseCount,
  least: 1,
  defaultMinimum: 1,
  form: 'a whole number of at least 1',
};
const CPU: LimitKind = {
  name: 'cpu_limit',
  parse: parseCpuMillicores,
  least: 1,
  defaultMinimum: 1000,
  form: 'millicores: a whole number of at least 1 such as 500, or a text such as "500m"',
};
const MEMORY: LimitKind = {
  name: 'memory_limit',
  parse: parseMemoryMebibytes,
  least: 1,
  defaultMinimum: 200,
  form: 'a whole number of MiB of at least 1 such as 200, or a text such as "200Mi" or "2Gi"',
};
const GPUS: LimitKind = {
  name: 'gpu_limit',
  parse: parseCount,
  least: 0,
  defaultMinimum: 0,
  form: 'a whole number of at least 0',
};

function shown(value: unknown): string {
  return typeof value === 'object' && value !== null ? 'a list or an object' : JSON.stringify(value).slice(0, 100);
}

/** One limit; undefined when it is not given, which the empty text says too. */
function readLimit(members: Members, member: string, kind: LimitKind): number | undefined {
  const given = Object.hasOwn(members, member) ? members[member] : undefined;
  if (given === undefined || given === '') return undefined;
  const limit = kind.parse(given);
  if (limit === null || limit < kind.least) {
    throw invalid('fname', `${member} is ${shown(given)}; it should be ${kind.form}.`);
  }
  if (limit > LARGEST_LIMIT) {
    // the reference names the member where the limit is a plain number
    throw invalid(kind.parse === parseCount ? member : 'fname', `${member} is larger than ${LARGEST_LIMIT}.`);
  }
  return limit;
}

function readRange(members: Members, kind: LimitKind): { readonly min: number; readonly max: number } {
  const [minName, maxName] = [`min_${kind.name}`, `max_${kind.name}`];
  const min = readLimit(members, minName, kind) ?? kind.defaultMinimum;
  const max = readLimit(members, maxName, kind) ?? (kind === GPUS && min === 0 ? 0 : LARGEST_LIMIT);
  if (max < min) {
    const how = Object.hasOwn(members, minName) && members[minName] !== '' ? '' : ', the default';
    throw invalid('fname', `${maxName} is ${max}, which is less than ${minName} (${min}${how}).`);
  }
  return { min, max };
}

/** The limits that a descriptor gives, with the defaults of the others. @throws {InvalidFields} */
export function readLimits(members: Members): PluginLimits {
  const workers = readRange(members, WORKERS);
  const cpu = readRange(members, CPU);
  const memory = readRange(members, MEMORY);
  const gpus = readRange(members, GPUS);
  return {
    min_number_of_workers: workers.min,
    max_number_of_workers: workers.max,
    min_cpu_limit: cpu.min,
    max_cpu_limit: cpu.max,
    min_memory_limit: memory.min,
    max_memory_limit: memory.max,
    min_gpu_limit: gpus.min,
    max_gpu_limit: gpus.max,
  };
}
