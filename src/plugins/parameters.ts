/** The parameters that a plugin's descriptor declares (`plugins.md` section 4.3). */
import type { ParameterAction, ParameterType } from '../compute/command-line.ts';
import { type InvalidFields, invalid } from '../hypermedia/errors.ts';
import {
  boolean,
  type InputField,
  integer,
  type Members,
  number,
  Problem,
  readInput,
  text,
} from '../hypermedia/input.ts';

export interface DeclaredParameter {
  readonly name: string;
  readonly type: ParameterType;
  readonly optional: boolean;
  /** null: there is none. */
  readonly default: string | number | boolean | null;
  readonly flag: string;
  /** Empty when there is none. */
  readonly short_flag: string;
  readonly action: ParameterAction;
  readonly help: string;
  readonly ui_exposed: boolean;
}

/** How a source of plugins calls the types. */
export type TypeNames = Readonly<Record<string, ParameterType>>;

export const DESCRIPTOR_TYPE_NAMES: TypeNames = {
  str: 'string',
  int: 'integer',
  float: 'float',
  bool: 'boolean',
  path: 'path',
  unextpath: 'unextpath',
};

export const STORE_TYPE_NAMES: TypeNames = {
  string: 'string',
  integer: 'integer',
  float: 'float',
  boolean: 'boolean',
  path: 'path',
  unextpath: 'unextpath',
};

const ACTIONS: readonly ParameterAction[] = ['store', 'store_true', 'store_false'];

function isAction(word: string): word is ParameterAction {
  return ACTIONS.some((action) => action === word);
}

const FIELDS = {
  name: text({ max: 50, required: true }),
  flag: text({ max: 52, required: true }),
  short_flag: text({ max: 52, blank: true }),
  action: text({
    max: 20,
    check: (word) => (isAction(word) ? null : `"${word}" is not an action; ${ACTIONS.join(', ')} are.`),
  }),
  help: text({ blank: true }),
};

/** What a default must be; paths have none. */
const DEFAULT_READERS: Readonly<Partial<Record<ParameterType, InputField<string | number | boolean>>>> = {
  string: text({ max: 600, blank: true }),
  integer: integer(),
  float: number(),
  boolean: boolean(),
};

/** What is known of a parameter once its form has been found right. */
interface FormedParameter {
  readonly members: Members;
  readonly type: ParameterType;
  readonly optional: boolean;
  readonly ui_exposed: boolean;
}

export function isObject(value: unknown): value is Members {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function given(members: Members, name: string): unknown {
  return Object.hasOwn(members, name) ? members[name] : undefined;
}

function wrongForm(position: number, problem: string): InvalidFields {
  return invalid('fname', `Parameter ${position} of the plugin ${problem}.`);
}

function readTruth(members: Members, name: string, otherwise: boolean, position: number): boolean {
  const value = given(members, name);
  const read = value === undefined ? otherwise : boolean().read(value);
  if (read instanceof Problem) throw wrongForm(position, `says something else than true or false as "${name}"`);
  return read;
}

function readType(members: Members, names: TypeNames, position: number): ParameterType {
  const word = given(members, 'type');
  const type = typeof word === 'string' && Object.hasOwn(names, word) ? names[word] : undefined;
  if (type === undefined) throw wrongForm(position, `has no "type" among ${Object.keys(names).join(', ')}`);
  return type;
}

function readForm(value: unknown, names: TypeNames, position: number): FormedParameter {
  if (!isObject(value)) throw wrongForm(position, 'is not a JSON object');
  const type = readType(value, names, position);
  const optional = readTruth(value, 'optional', false, position);
  const ui_exposed = readTruth(value, 'ui_exposed', true, position);
  const hasDefault = (given(value, 'default') ?? null) !== null;
  const isPath = type === 'path' || type === 'unextpath';
  if (isPath && optional) throw wrongForm(position, `is of type ${type}, which cannot be optional`);
  if (isPath && hasDefault) throw wrongForm(position, `is of type ${type}, which cannot have a default`);
  if (optional && !hasDefault) throw wrongForm(position, 'is optional and therefore needs a default');
  if (!optional && !ui_exposed) throw wrongForm(position, 'is not optional and therefore cannot be hidden');
  return { members: value, type, optional, ui_exposed };
}

function requireDistinct(parameters: readonly FormedParameter[], member: 'name' | 'flag'): void {
  const seen = new Set<string>();
  for (const [index, { members }] of parameters.entries()) {
    const value = given(members, member);
    if (typeof value !== 'string') continue;
    if (seen.has(value.trim())) throw wrongForm(index + 1, `has the same ${member} as one before it`);
    seen.add(value.trim());
  }
}

/** @throws {InvalidFields} naming `value`, as the reference does */
function readDefault({ members, type }: FormedParameter): string | number | boolean | null {
  const value = given(members, 'default') ?? null;
  const reader = DEFAULT_READERS[type];
  if (value === null || reader === undefined) return null;
  const read = reader.read(value);
  if (read instanceof Problem) throw invalid('value', `The default of a parameter of type ${type}: ${read.text}`);
  return read;
}

function readAction(type: ParameterType, word: string | undefined, value: unknown): ParameterAction {
  const action = word !== undefined && isAction(word) ? word : undefined;
  if (type === 'boolean') return action ?? (value === true ? 'store_false' : 'store_true');
  if (action !== undefined && action !== 'store') {
    throw invalid('action', `${action} is for parameters of type bool; one of type ${type} needs store.`);
  }
  return 'store';
}

function readFields(parameter: FormedParameter): DeclaredParameter {
  const { members, type, optional, ui_exposed } = parameter;
  const input = readInput(FIELDS, { members, isForm: false });
  const value = readDefault(parameter);
  return {
    name: input.name,
    type,
    optional,
    default: value,
    flag: input.flag,
    short_flag: input.short_flag ?? '',
    action: readAction(type, input.action, value),
    help: input.help ?? '',
    ui_exposed,
  };
}

/**
 * Checks the form of all parameters; the function that it gives checks their fields, which is done after all other fields.
 * @throws {InvalidFields}
 */
export function readParameters(value: unknown, names: TypeNames): () => readonly DeclaredParameter[] {
  if (!Array.isArray(value)) throw invalid('fname', 'The plugin\'s "parameters" are not a JSON list. It may be empty.');
  const formed = value.map((one: unknown, index) => readForm(one, names, index + 1));
  requireDistinct(formed, 'name');
  requireDistinct(formed, 'flag');
  return () => formed.map(readFields);
}
