/** Asking for a password where nobody can read along: never as an argument, which other users of the machine would see. */
import { createInterface } from 'node:readline/promises';
import { Writable } from 'node:stream';
import { CommandError } from './failure.ts';

/** Asks twice on a terminal; else the first line of standard input. @throws {CommandError} when the two differ or nothing comes */
export async function askPassword(what: string): Promise<string> {
  if (!process.stdin.isTTY) return readLine();
  const first = await askHidden(`${what}: `);
  const second = await askHidden('The same again: ');
  if (first !== second) throw new CommandError('The two passwords are not the same; nothing was changed.');
  return first;
}

async function readLine(): Promise<string> {
  const lines = createInterface({ input: process.stdin });
  for await (const line of lines) {
    lines.close();
    return line;
  }
  throw new CommandError('The password should be the first line of standard input, which is empty.');
}

async function askHidden(question: string): Promise<string> {
  process.stderr.write(question);
  // With an output that shows nothing, what is typed stays invisible.
  const nowhere = new Writable({ write: (_chunk, _encoding, done) => done() });
  const terminal = createInterface({ input: process.stdin, output: nowhere, terminal: true });
  const cancelled = new AbortController();
  terminal.once('SIGINT', () => cancelled.abort());
  try {
    return await terminal.question('', { signal: cancelled.signal });
  } catch (error) {
    if (cancelled.signal.aborted) throw new CommandError('Nothing was changed.');
    throw error;
  } finally {
    terminal.close();
    process.stderr.write('\n');
  }
}
