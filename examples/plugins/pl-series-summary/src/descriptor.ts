/** The plugin's descriptor, which is also what its command line is made of: a parameter is described once. */
import { readFileSync } from 'node:fs';

interface Described {
  readonly name: string;
  readonly flag: string;
  readonly short_flag: string;
  readonly help: string;
}

export type Parameter = Described &
  (
    | { readonly type: 'int'; readonly default: number }
    | { readonly type: 'str'; readonly default: string }
    | { readonly type: 'bool'; readonly default: false }
  );

export interface Descriptor {
  readonly name: string;
  readonly version: string;
  readonly description: string;
  readonly dock_image: string;
  readonly execshell: string;
  readonly selfpath: string;
  readonly selfexec: string;
  readonly parameters: readonly Parameter[];
}

export const descriptorText = readFileSync(new URL('../pl-series-summary.json', import.meta.url), 'utf8');

export const descriptor: Descriptor = JSON.parse(descriptorText);
