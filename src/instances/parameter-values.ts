/**
 * The values that a request gives for a plugin's parameters. They are checked one by one in the plugin's order, and the first
 * that is refused answers: a missing one under its own name, a wrong one under the name `value`, as clients expect.
 */
import type { CallerSql } from '../access/caller.ts';
import type { ParameterType } from '../compute/command-line.ts';
import type { Transaction } from '../database/database.ts';
import { invalid } from '../hypermedia/errors.ts';
import { boolean, type InputField, integer, type Members, number, Problem, text } from '../hypermedia/input.ts';
import { readPathList, requireJobPaths } from './job-paths.ts';
import { splitFilters } from './path-filters.ts';
import type { PluginFacts, PluginParameter } from './plugin-facts.ts';

export type ParameterValue = string | number | boolean;
/** By parameter id. */
export type ParameterValues = ReadonlyMap<number, ParameterValue>;

const PATHS: InputField<string> = text({ max: 16_000 });

const READERS: Readonly<Record<ParameterType, InputField<ParameterValue>>> = {
  string: text({ max: 600, blank: true }),
  integer: integer(),
  float: number(),
  boolean: boolean(),
  path: PATHS,
  unextpath: PATHS,
};

function wrong(parameter: PluginParameter, problem: string): Error {
  return invalid('value', `${parameter.name}: ${problem}`);
}

/** The parents that a `ts` instance names, each once, in their order. */
export interface NamedParents {
  /** Ids separated by commas; empty when it names none. */
  readonly text: string;
  readonly ids: readonly number[];
}

/** @throws {InvalidFields} naming `value` */
function readInstanceIds(parameter: PluginParameter, given: string): NamedParents {
  const words = given === '' ? [] : given.split(',').map((word) => word.trim());
  const ids = words.map((word) => {
    if (/^\d{1,15}$/.test(word)) return Number(word);
    throw wrong(parameter, `"${word.slice(0, 100)}" is not the id of a plugin instance. Separate ids by commas.`);
  });
  return { text: words.join(','), ids: [...new Set(ids)] };
}

/** Where a value depends on more than itself. */
export interface ValueContext {
  readonly transaction: Transaction;
  readonly caller: CallerSql;
  /** Checks the parents that a `ts` instance names. @throws {InvalidFields} naming `value` */
  readonly requireParents: (ids: readonly number[]) => Promise<void>;
}

async function readString(
  plugin: PluginFacts,
  parameter: PluginParameter,
  given: string,
  context: ValueContext,
): Promise<string> {
  if (plugin.type !== 'ts') return given;
  if (parameter.name === 'plugininstances') {
    const parents = readInstanceIds(parameter, given);
    await context.requireParents(parents.ids);
    return parents.text;
  }
  // one that is no regular expression shows when the outputs are joined, as clients know it
  return parameter.name === 'filter' ? splitFilters(given).join(',') : given;
}

async function readValue(
  plugin: PluginFacts,
  parameter: PluginParameter,
  given: unknown,
  context: ValueContext,
): Promise<ParameterValue> {
  const value = READERS[parameter.type].read(given);
  if (value instanceof Problem) throw wrong(parameter, value.text);
  if (typeof value !== 'string') return value;
  if (parameter.type === 'string') return readString(plugin, parameter, value, context);
  const paths = readPathList(value);
  await requireJobPaths(context.transaction, context.caller, paths);
  return paths.join(',');
}

/** @throws {InvalidFields} for the first parameter that is missing or wrong */
export async function readParameterValues(
  plugin: PluginFacts,
  members: Members,
  context: ValueContext,
): Promise<ParameterValues> {
  const values = new Map<number, ParameterValue>();
  for (const parameter of plugin.parameters) {
    const given = Object.hasOwn(members, parameter.name) ? members[parameter.name] : undefined;
    if (given !== undefined) values.set(parameter.id, await readValue(plugin, parameter, given, context));
    else if (!parameter.optional) throw invalid(parameter.name, 'This parameter is required.');
  }
  return values;
}

/** The parents that the values name, if the plugin joins several instances. */
export function namedParents(plugin: PluginFacts, values: ParameterValues): readonly number[] {
  const parameter = plugin.type === 'ts' ? plugin.parameters.find(({ name }) => name === 'plugininstances') : undefined;
  const value = parameter && values.get(parameter.id);
  return parameter && typeof value === 'string' ? readInstanceIds(parameter, value).ids : [];
}
