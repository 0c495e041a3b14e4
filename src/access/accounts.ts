/** Who may see and change accounts and what belongs to them. */
import { sql } from 'kysely';
import type { Rule } from './caller.ts';

/** Rows with a column `account_id`: their owner and administrators. */
export const ownRow: Rule = (alias, caller) => {
  if (caller.role === 'administrator') return sql`true`;
  return caller.role === 'anonymous' ? sql`false` : sql`${sql.ref(`${alias}.account_id`)} = ${caller.id}`;
};

/** An account: its owner and administrators. */
export const ownAccount: Rule = (alias, caller) => {
  if (caller.role === 'administrator') return sql`true`;
  return caller.role === 'anonymous' ? sql`false` : sql`${sql.ref(`${alias}.id`)} = ${caller.id}`;
};
