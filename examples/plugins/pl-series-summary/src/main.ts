/** The command `series-summary`. Exit status: 0 when the summary was written, 1 when it could not be, 2 for a wrong command line. */
import { stat } from 'node:fs/promises';
import { type Command, helpText, readCommandLine, UsageError } from './command-line.ts';
import { descriptor, descriptorText } from './descriptor.ts';
import { summarise } from './summarise.ts';

process.exitCode = await main(process.argv.slice(2));

async function main(words: readonly string[]): Promise<number> {
  try {
    return await execute(readCommandLine(words));
  } catch (error) {
    if (error instanceof UsageError) {
      console.error(`series-summary: ${error.message}\nTry: series-summary --help`);
      return 2;
    }
    console.error(`series-summary: ${error instanceof Error ? error.message : error}`);
    return 1;
  }
}

async function execute(command: Command): Promise<number> {
  if (command.name === 'help') console.log(helpText());
  if (command.name === 'version') console.log(descriptor.version);
  if (command.name === 'descriptor') console.log(descriptorText.trimEnd());
  if (command.name === 'run') {
    await requireFolder(command.inputFolder, 'input');
    await requireFolder(command.outputFolder, 'output');
    const summary = await summarise(command.inputFolder, command.outputFolder, command.options, console.log);
    const { series, volumes, problems, ignored } = summary;
    console.log(
      `${series.length} series, ${volumes.length} NIfTI file(s), ${problems.length} problem(s), ${ignored.length} other file(s)`,
    );
  }
  return 0;
}

async function requireFolder(path: string, role: string): Promise<void> {
  const status = await stat(path).catch((error: Error) => {
    throw new Error(`the ${role} folder cannot be used: ${error.message}`);
  });
  if (!status.isDirectory()) throw new Error(`the ${role} folder '${path}' is not a folder`);
}
