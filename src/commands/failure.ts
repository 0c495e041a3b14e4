/** What a person at the terminal is told when a command fails. */
import pg from 'pg';
import { ConfigError } from '../config.ts';
import { DatabaseError } from '../database/errors.ts';
import { UnsuitableDatabase } from '../database/migrate.ts';
import { InvalidFields } from '../hypermedia/errors.ts';

/** The command was used wrongly or found something that it cannot work with; the message is all that there is to say. */
export class CommandError extends Error {
  override readonly name: string = 'CommandError';
}

/** Expected failures by their message; anything else with its stack, because it is a fault of the program. */
export function describeFailure(error: unknown): string {
  if (error instanceof InvalidFields) return fieldsText(error);
  if (error instanceof Error && 'code' in error && error.code === 'EADDRINUSE') {
    return `hypercube: ${error.message}. Another program has the port; set HYPERCUBE_PORT to a free one.`;
  }
  if (isExpected(error)) return `hypercube: ${error.message}`;
  return `hypercube: ${error instanceof Error ? (error.stack ?? error.message) : String(error)}`;
}

function isExpected(error: unknown): error is Error {
  if (!(error instanceof Error)) return false;
  const expected = [CommandError, ConfigError, DatabaseError, UnsuitableDatabase, pg.DatabaseError];
  return expected.some((kind) => error instanceof kind) || 'syscall' in error;
}

/** One line for each field that is wrong. */
function fieldsText({ fields }: InvalidFields): string {
  const lines = Object.entries(fields).map(([field, texts]) => {
    const text = Array.isArray(texts) ? texts.join(' ') : JSON.stringify(texts);
    return field === 'non_field_errors' ? `  ${text}` : `  ${field}: ${text}`;
  });
  return `hypercube: that cannot be done:\n${lines.join('\n')}`;
}
