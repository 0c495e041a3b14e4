/**
 * The JSON representation of a plugin (`plugins.md` section 4): what a descriptor file or a plugin store says of one version.
 * Pure functions: whatever JSON comes in, out comes a plugin that can be stored, or an `InvalidFields`.
 */
import { invalid } from '../hypermedia/errors.ts';
import { type Input, integer, type Members, readInput, text, url } from '../hypermedia/input.ts';
import { type PluginLimits, readLimits } from './limits.ts';
import {
  DESCRIPTOR_TYPE_NAMES,
  type DeclaredParameter,
  isObject,
  readParameters,
  STORE_TYPE_NAMES,
} from './parameters.ts';

export type PluginType = 'fs' | 'ds' | 'ts';

const TYPES: readonly PluginType[] = ['fs', 'ds', 'ts'];

function isType(word: string): word is PluginType {
  return TYPES.some((type) => type === word);
}

/** What all versions of a plugin share. */
export interface DescribedMeta {
  readonly name: string;
  readonly type: PluginType;
  readonly title: string;
  readonly public_repo: string;
  readonly license: string;
  readonly icon: string;
  readonly category: string;
  readonly authors: string;
  readonly documentation: string;
  /** Only a store tells it. */
  readonly stars?: number;
}

export interface DescribedVersion extends PluginLimits {
  readonly version: string;
  readonly dock_image: string;
  readonly description: string;
  readonly execshell: string;
  readonly selfpath: string;
  readonly selfexec: string;
}

export interface PluginDescriptor {
  readonly meta: DescribedMeta;
  readonly version: DescribedVersion;
  readonly parameters: readonly DeclaredParameter[];
}

const REQUIRED_MEMBERS = ['name', 'version', 'dock_image', 'execshell', 'selfpath', 'selfexec', 'parameters'];

const META_FIELDS = {
  name: text({ max: 100, required: true }),
  type: text({
    required: true,
    check: (word) =>
      isType(word) ? null : `"${word.slice(0, 100)}" is not a type of plugin; ${TYPES.join(', ')} are.`,
  }),
  title: text({ max: 400, blank: true }),
  public_repo: url({ max: 300, blank: true }),
  license: text({ max: 50, blank: true }),
  icon: url({ max: 300, blank: true }),
  category: text({ max: 100, blank: true }),
  authors: text({ max: 200, blank: true }),
  documentation: text({ max: 800, blank: true }),
};

const STARS = { stars: integer({ minimum: 0 }) };

const VERSION_FIELDS = {
  version: text({ max: 10, required: true }),
  dock_image: text({ max: 500, required: true }),
  description: text({ max: 2000, blank: true }),
  execshell: text({ max: 50, required: true }),
  selfpath: text({ max: 512, required: true }),
  selfexec: text({ max: 50, required: true }),
};

function requireMembers(members: Members): void {
  const missing = REQUIRED_MEMBERS.filter((name) => !Object.hasOwn(members, name));
  if (missing.length > 0) throw invalid('fname', `The plugin lacks ${missing.map((name) => `"${name}"`).join(', ')}.`);
}

function requireVersionForm(version: unknown): void {
  if (typeof version === 'string' && /^[\d.]+$/.test(version)) return;
  throw invalid('fname', 'The plugin\'s "version" is not a text of digits and dots such as "1.0.2".');
}

function describedMeta(input: Input<typeof META_FIELDS>, stars: number | undefined): DescribedMeta {
  const { name, type } = input;
  if (!isType(type)) throw invalid('type', `${TYPES.join(', ')} are the types of plugins.`);
  const {
    title = '',
    public_repo = '',
    license = '',
    icon = '',
    category = '',
    authors = '',
    documentation = '',
  } = input;
  const shared = { name, type, title, public_repo, license, icon, category, authors, documentation };
  return stars === undefined ? shared : { ...shared, stars };
}

/**
 * Reads a plugin. Only the members that are listed here count; all others are ignored.
 * @param source a store uses the long names of parameter types and tells the stars
 * @throws {InvalidFields} of the first group of checks that fails (`plugins.md` section 4.4)
 */
export function parseDescriptor(value: unknown, source: 'file' | 'store' = 'file'): PluginDescriptor {
  if (!isObject(value)) throw invalid('fname', 'The plugin is not described by a JSON object.');
  requireMembers(value);
  requireVersionForm(value.version);
  const limits = readLimits(value);
  const readFields = readParameters(value.parameters, source === 'store' ? STORE_TYPE_NAMES : DESCRIPTOR_TYPE_NAMES);
  const body = { members: value, isForm: false };
  const meta = readInput(META_FIELDS, body);
  const stars = source === 'store' ? readInput(STARS, body).stars : undefined;
  const { description = '', ...version } = readInput(VERSION_FIELDS, body);
  return {
    meta: describedMeta(meta, stars),
    version: { ...version, description, ...limits },
    parameters: readFields(),
  };
}

/** Reads the bytes of a descriptor file. @throws {InvalidFields} */
export function parseDescriptorFile(bytes: Buffer): PluginDescriptor {
  return parseDescriptor(parseJson(bytes));
}

function parseJson(bytes: Buffer): unknown {
  try {
    return JSON.parse(bytes.toString('utf8').replace(/^\uFEFF/, ''));
  } catch (error) {
    const reason = error instanceof Error ? error.message : 'it cannot be read';
    throw invalid('fname', `The file is not JSON: ${reason}.`);
  }
}
