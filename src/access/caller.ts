/**
 * Who is asking.
 *
 * Terminology
 *   caller         whoever sent a request, after its credentials were checked
 *   role           what the access rules look at: `administrator` may do what the reference's user `chris` may; `job` is a
 *                  running program, which acts for its owner in one feed only, on routes that let programs in
 *   staff          may use the administration routes; every administrator is staff
 *   rule           a function from a table alias and a caller to the SQL condition "may do this with this row"
 */
import { type RawBuilder, type SqlBool, sql } from 'kysely';

export type Role = 'anonymous' | 'user' | 'administrator' | 'job';
export const ROLES: readonly Role[] = ['anonymous', 'user', 'administrator', 'job'];

export type Credentials = 'none' | 'basic' | 'token' | 'session' | 'download token';

export interface Caller {
  readonly role: Role;
  /** Account id; null for anonymous callers. */
  readonly id: number | null;
  readonly username: string;
  readonly isStaff: boolean;
  readonly credentials: Credentials;
  /** The token that was presented: an API token, which a change of password spares, or a download token, which is used up. */
  readonly tokenId: number | null;
  /** The feed that a job's token reaches; null for everybody else. */
  readonly feedId: number | null;
}

export const ANONYMOUS: Caller = {
  role: 'anonymous',
  id: null,
  username: '',
  isStaff: false,
  credentials: 'none',
  tokenId: null,
  feedId: null,
};

/** A caller as the rules see it: the role decides which condition is written, the id is a value or a symbolic parameter. */
export interface CallerSql {
  readonly role: Role;
  readonly id: unknown;
  /** Of a job. */
  readonly feedId?: unknown;
}

export type Condition = RawBuilder<SqlBool>;

export type Rule = (alias: string, caller: CallerSql) => Condition;

export const anyone: Rule = () => sql`true`;
export const nobody: Rule = () => sql`false`;
export const signedIn: Rule = (_alias, caller) => (caller.role === 'anonymous' ? sql`false` : sql`true`);
export const administrators: Rule = (_alias, caller) => (caller.role === 'administrator' ? sql`true` : sql`false`);
