/** The command line. Each command is loaded only when it is the one that is wanted. */
import { readFileSync } from 'node:fs';
import { Command, Option } from 'commander';
import type { DemoOptions } from './commands/demo.ts';
import { describeFailure } from './commands/failure.ts';

const { version }: { version: string } = JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8'));

const program = new Command('hypercube')
  .description('The ChRIS backend in one process: feeds, plugins, files and compute for medical-image analysis.')
  .version(version)
  .showHelpAfterError('(add --help for what is possible)')
  .addHelpText(
    'after',
    '\nSettings are environment variables, HYPERCUBE_PORT and others: see docs/configuration.md.\n' +
      'Without any, everything is kept in ./data, an embedded PostgreSQL included.',
  );

program
  .command('serve')
  .description('start the server: the database, HTTP and the worker, in one process')
  .option('--no-worker', 'leave background work to `hypercube worker` processes')
  .action(async (options: { worker: boolean }) => (await import('./commands/serve.ts')).serve(options));

program
  .command('worker')
  .description('do background work beside a server that uses the same database and storage')
  .action(async () => (await import('./commands/worker.ts')).work());

program
  .command('migrate')
  .description('bring the database to the form that this version needs (serve and worker do so too)')
  .action(async () => (await import('./commands/migrate.ts')).migrateDatabase());

program
  .command('demo')
  .description('run a whole analysis on example images, on a server of its own that is removed afterwards')
  .addOption(
    new Option('--engine <name>', 'what runs the plugin; auto: containers where there are any')
      .choices(['auto', 'containers', 'process'])
      .default('auto'),
  )
  .option('--output <folder>', 'where the results go', 'hypercube-demo')
  .option('--keep', 'leave the server running until Ctrl-C', false)
  .action(async (options: DemoOptions) => (await import('./commands/demo.ts')).runDemo(options));

const user = program.command('user').description('make and change accounts');
const PASSWORD_HELP = '\nThe password is asked for; when standard input is not a terminal, it is its first line.';
user
  .command('create')
  .description('make an account')
  .argument('<username>', '4 to 32 characters without / and ,')
  .requiredOption('--email <address>', 'e-mail address')
  .option('--administrator', 'with all rights', false)
  .addHelpText('after', PASSWORD_HELP)
  .action(async (username: string, options: { email: string; administrator: boolean }) =>
    (await import('./commands/user.ts')).createUser(username, options),
  );
user
  .command('password')
  .description('give an account another password, which ends its sessions and tokens')
  .argument('<username>')
  .addHelpText('after', PASSWORD_HELP)
  .action(async (username: string) => (await import('./commands/user.ts')).changePassword(username));
user
  .command('promote')
  .description('make an account an administrator')
  .argument('<username>')
  .action(async (username: string) => (await import('./commands/user.ts')).promote(username));

program
  .command('plugin')
  .description('manage plugins')
  .command('add')
  .description('register a plugin')
  .argument('<descriptor>', 'JSON file that describes it')
  .requiredOption('--compute <names>', 'compute resources that it runs on, separated by commas')
  .option('--owner <username>', 'to whom it belongs')
  .action(async (descriptor: string, options: { compute: string; owner?: string }) =>
    (await import('./commands/plugin.ts')).addPlugin(descriptor, options),
  );

program
  .command('compute')
  .description('manage compute resources')
  .command('add')
  .description('register a place where plugins run')
  .argument('<name>', 'by which plugins are assigned to it')
  .argument('<url>', 'unix:///var/run/docker.sock, tcp://host:2375, process:<folder>, or http(s)://… of a pfcon')
  .option('--description <text>', 'for people', '')
  .option('--user <name>', 'user of the service (pfcon)')
  .option('--max-seconds <number>', 'longest time that one job may take')
  .addHelpText(
    'after',
    '\nThe password of --user is asked for; when standard input is not a terminal, it is its first line.',
  )
  .action(async (name: string, url: string, options: { description: string; user?: string; maxSeconds?: string }) =>
    (await import('./commands/compute.ts')).addCompute(name, url, options),
  );

try {
  await program.parseAsync();
} catch (error) {
  process.stderr.write(`${describeFailure(error)}\n`);
  process.exitCode = 1;
}
