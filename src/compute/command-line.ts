/**
 * The command line of a plugin's program, from its descriptor and the stored parameters of an instance.
 * The order of types and the spelling of values are those of the compute protocol (pfcon), which programs rely on.
 */

export type ParameterType = 'unextpath' | 'path' | 'string' | 'integer' | 'float' | 'boolean';

export type ParameterAction = 'store' | 'store_true' | 'store_false';

export interface StoredParameter {
  readonly type: ParameterType;
  readonly flag: string;
  readonly action: ParameterAction;
  readonly value: string | number | boolean;
}

export interface ProgramLocation {
  readonly execshell: string;
  readonly selfpath: string;
  readonly selfexec: string;
}

export interface CommandLine {
  readonly entrypoint: readonly string[];
  readonly arguments: readonly string[];
  /** Flags whose following argument is replaced by the program's input folder. */
  readonly pathFlags: readonly string[];
}

const TYPES_IN_ORDER: readonly ParameterType[] = ['unextpath', 'path', 'string', 'integer', 'float', 'boolean'];

const INPUT_FOLDER_TYPES: ReadonlySet<ParameterType> = new Set(['unextpath', 'path']);

export function buildCommandLine(program: ProgramLocation, parameters: readonly StoredParameter[]): CommandLine {
  const ordered = TYPES_IN_ORDER.flatMap((type) => parameters.filter((parameter) => parameter.type === type));
  return {
    entrypoint: entrypointOf(program),
    arguments: ordered.flatMap(argumentsOf),
    pathFlags: ordered.filter((parameter) => INPUT_FOLDER_TYPES.has(parameter.type)).map((parameter) => parameter.flag),
  };
}

/** The arguments with the value after each path flag replaced by the folder where the program finds its input. */
export function replacePathValues(
  commandArguments: readonly string[],
  pathFlags: readonly string[],
  inputFolder: string,
): string[] {
  const flags = new Set(pathFlags);
  const result = [...commandArguments];
  for (let index = 0; index + 1 < result.length; index++) {
    const argument = result[index];
    if (argument !== undefined && flags.has(argument)) {
      index++;
      result[index] = inputFolder;
    }
  }
  return result;
}

/** A command as one text that a POSIX shell reads back as the same words. */
export function quoteCommand(words: readonly string[]): string {
  return words.map((word) => (/^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", `'"'"'`)}'`)).join(' ');
}

function entrypointOf({ execshell, selfpath, selfexec }: ProgramLocation): string[] {
  const program = selfpath === '' ? selfexec : `${selfpath}/${selfexec}`;
  return execshell === '' ? [program] : [execshell, program];
}

function argumentsOf(parameter: StoredParameter): string[] {
  switch (parameter.action) {
    case 'store':
      return [parameter.flag, valueText(parameter)];
    case 'store_true':
      return parameter.value === true ? [parameter.flag] : [];
    case 'store_false':
      return parameter.value === false ? [parameter.flag] : [];
  }
}

function valueText({ type, value }: StoredParameter): string {
  const text = String(value);
  // Programs tell floats from integers by the decimal point.
  return type === 'float' && /^-?\d+$/.test(text) ? `${text}.0` : text;
}
