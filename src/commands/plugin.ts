/** `hypercube plugin add`: registers a plugin from its descriptor. */
import { readFile } from 'node:fs/promises';
import { registerDescriptor } from '../plugins/administration.ts';
import { splitNames } from '../plugins/registration.ts';
import { CommandError } from './failure.ts';
import { withServices } from './runtime.ts';

export async function addPlugin(
  file: string,
  options: { readonly compute: string; readonly owner?: string },
): Promise<void> {
  const descriptor = parse(await readFile(file, 'utf8'), file);
  const id = await withServices((services) =>
    registerDescriptor(services, descriptor, splitNames(options.compute), options.owner ?? null),
  );
  process.stdout.write(`Registered the plugin of ${file} with the id ${id}.\n`);
}

function parse(text: string, file: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    throw new CommandError(`${file} should hold the JSON of a plugin's descriptor (${reason}).`);
  }
}
