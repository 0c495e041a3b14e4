/** What a request to run a plugin may say besides the plugin's parameters (`instances.md` section 4). */
import { type Input, type InputField, type OptionalField, Problem, text } from '../hypermedia/input.ts';
import { LARGEST_LIMIT, parseCount, parseCpuMillicores, parseMemoryMebibytes } from '../plugins/limits.ts';
import type { ComputeResource, PluginFacts } from './plugin-facts.ts';

interface LimitKind {
  readonly parse: (value: unknown) => number | null;
  /** How it may be written, for people. */
  readonly form: string;
}

const WORKERS: LimitKind = { parse: parseCount, form: 'A valid integer is required.' };
const GPUS = WORKERS;
const CPU: LimitKind = { parse: parseCpuMillicores, form: 'Enter millicores: an integer such as 1500, or "1500m".' };
const MEMORY: LimitKind = {
  parse: parseMemoryMebibytes,
  form: 'Enter mebibytes: an integer such as 200, or a text such as "200Mi" or "2Gi".',
};

/** A limit within what the plugin allows; null means the same as leaving it out. */
function limit({ parse, form }: LimitKind, minimum: number, maximum: number): OptionalField<number | undefined> {
  const read = (value: unknown): number | undefined | Problem => {
    if (value === null) return undefined;
    const parsed = parse(typeof value === 'string' ? value.trim() : value);
    if (parsed === null) return new Problem(form);
    if (parsed >= minimum && parsed <= maximum) return parsed;
    return new Problem(`${parsed} is not within what the plugin allows: ${minimum} to ${maximum}.`);
  };
  return { type: 'integer', required: false, schema: { minimum, maximum, nullable: true }, read };
}

function computeResourceName(plugin: PluginFacts): OptionalField<string> {
  const names = plugin.computeResources.map(({ name }) => name);
  const check = (name: string): string | null =>
    names.includes(name)
      ? null
      : `The plugin ${plugin.name} is registered on ${names.join(', ') || 'no compute resource'}.`;
  return text({ check });
}

/** Read later, because it is looked at only after all fields have been found right. */
const PREVIOUS_ID: OptionalField<unknown> = {
  type: 'integer',
  required: false,
  schema: { description: 'The parent: required unless the plugin is of type fs.' },
  read: (value) => value,
};

export function requestFields(plugin: PluginFacts) {
  return {
    title: text({ max: 100, blank: true }),
    compute_resource_name: computeResourceName(plugin),
    previous_id: PREVIOUS_ID,
    cpu_limit: limit(CPU, plugin.min_cpu_limit, plugin.max_cpu_limit),
    memory_limit: limit(MEMORY, plugin.min_memory_limit, plugin.max_memory_limit),
    number_of_workers: limit(WORKERS, plugin.min_number_of_workers, plugin.max_number_of_workers),
    gpu_limit: limit(GPUS, plugin.min_gpu_limit, plugin.max_gpu_limit),
  } satisfies Readonly<Record<string, InputField<unknown>>>;
}

export type RunRequest = Input<ReturnType<typeof requestFields>>;

export interface InstanceLimits {
  readonly cpu_limit: number;
  readonly memory_limit: number;
  readonly number_of_workers: number;
  readonly gpu_limit: number;
}

type AskedLimits = { readonly [Name in keyof InstanceLimits]?: InstanceLimits[Name] | undefined };

/** The limits asked for, and the plugin's minimum for each that was not. */
export function limitsOf(plugin: PluginFacts, asked: AskedLimits = {}): InstanceLimits {
  return {
    cpu_limit: asked.cpu_limit ?? plugin.min_cpu_limit,
    memory_limit: asked.memory_limit ?? plugin.min_memory_limit,
    number_of_workers: asked.number_of_workers ?? plugin.min_number_of_workers,
    gpu_limit: asked.gpu_limit ?? plugin.min_gpu_limit,
  };
}

/** The compute resource of that name, else the plugin's first one; null when the plugin has none. */
export function chooseComputeResource(plugin: PluginFacts, name: string | undefined): ComputeResource | null {
  const { computeResources } = plugin;
  return (name === undefined ? computeResources[0] : computeResources.find((one) => one.name === name)) ?? null;
}

/** Stands for the plugin where none is known: what holds for all of them. */
export const ANY_PLUGIN: PluginFacts = {
  id: 0,
  name: '',
  type: 'fs',
  parameters: [],
  computeResources: [],
  min_number_of_workers: 0,
  max_number_of_workers: LARGEST_LIMIT,
  min_cpu_limit: 0,
  max_cpu_limit: LARGEST_LIMIT,
  min_memory_limit: 0,
  max_memory_limit: LARGEST_LIMIT,
  min_gpu_limit: 0,
  max_gpu_limit: LARGEST_LIMIT,
};
