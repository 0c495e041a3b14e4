/**
 * Descriptors of the plugins that the server runs itself. They are those of the published plugins of the same names
 * (FNNDSC on GitHub), so that pipelines and clients which ask for them by name and version find what they expect.
 */
import { type PluginDescriptor, parseDescriptor } from './descriptor.ts';

function described(name: string, version: string, members: Readonly<Record<string, unknown>>): PluginDescriptor {
  return parseDescriptor({
    name: `pl-${name}`,
    version,
    dock_image: `fnndsc/pl-${name}:${version}`,
    authors: 'FNNDSC <dev@babyMRI.org>',
    category: 'utility',
    license: 'MIT',
    public_repo: `https://github.com/FNNDSC/pl-${name}`,
    documentation: `https://github.com/FNNDSC/pl-${name}`,
    execshell: '/usr/bin/python3',
    selfpath: '/usr/local/bin',
    selfexec: name,
    min_number_of_workers: 1,
    max_number_of_workers: 1,
    ...members,
  });
}

const DIRECTORIES = {
  name: 'dir',
  type: 'unextpath',
  optional: false,
  flag: '--dir',
  short_flag: '--dir',
  help: 'directories to be copied',
};

const INSTANCES = {
  name: 'plugininstances',
  type: 'str',
  optional: true,
  flag: '--plugininstances',
  short_flag: '--plugininstances',
  help: 'string representing a comma-separated list of plugin instance ids',
  default: '',
};

const FILTER = {
  name: 'filter',
  type: 'str',
  optional: true,
  flag: '--filter',
  short_flag: '-f',
  help: "string representing a comma-separated list of regular expressions to filter each of the input plugin instances' output dirs",
  default: '',
};

const GROUP_BY_INSTANCE = {
  name: 'groupByInstance',
  type: 'bool',
  optional: true,
  flag: '--groupByInstance',
  short_flag: '-g',
  help: "if set then an output directory is created for each input plugin instance within this plugin app's output path",
  default: false,
};

const TELEMETRY = {
  name: 'pftelDB',
  type: 'str',
  optional: true,
  flag: '--pftelDB',
  short_flag: '--pftelDB',
  help: "an optional pftel telemetry logger, of form '<pftelURL>/api/v1/<object>/<collection>/<event>'",
  default: '',
};

const DIRCOPY = {
  type: 'fs',
  title: 'A ChRIS fs app to copy obj storage directories',
  description: 'A plugin fs app to copy one or more obj storage directories',
  min_cpu_limit: '50m',
  max_cpu_limit: '1000m',
  parameters: [DIRECTORIES],
};

const TSDIRCOPY = {
  type: 'ts',
  title: 'A ChRIS ts app to efficiently copy one or more obj storage directories',
  description: 'A plugin ts app to efficiently copy one or more obj storage directories',
  parameters: [DIRECTORIES, INSTANCES, FILTER, GROUP_BY_INSTANCE],
};

const TOPOLOGICALCOPY = {
  type: 'ts',
  title: 'A ChRIS ts app to copy filtered output dirs from a list of plugin instances',
  description: 'A plugin ts app to copy filtered output dirs from a list of plugin instances',
  documentation: 'https://github.com/FNNDSC/pl-topologicalcopy#readme',
  parameters: [INSTANCES, FILTER, GROUP_BY_INSTANCE, TELEMETRY],
};

/** Versions in the order in which they are registered. Clients look for pl-dircopy 2.1.2 and pl-tsdircopy 1.2.1 by exact version. */
export const BUILTIN_PLUGINS: readonly PluginDescriptor[] = [
  described('dircopy', '2.1.2', DIRCOPY),
  described('dircopy', '2.1.3', DIRCOPY),
  described('tsdircopy', '1.2.1', TSDIRCOPY),
  described('topologicalcopy', '1.0.12', TOPOLOGICALCOPY),
];
