/** Tokens for running programs: of the instance's owner, but for one feed only, and ended with the job. */
import { randomBytes } from 'node:crypto';
import { sql } from 'kysely';
import { hashToken } from '../accounts/tokens.ts';
import type { Queries } from '../database/database.ts';
import type { Instance } from '../instances/instance.ts';

/** A token ends with its job; this is for a job whose end nobody sees. */
const LIFETIME_DAYS = 30;

/** A second submission makes a second token: the program of the first may be running. */
export async function createJobToken(database: Queries, instance: Instance): Promise<string> {
  const token = randomBytes(20).toString('hex');
  await database
    .insertInto('api_token')
    .values({
      account_id: instance.owner.id,
      token_hash: hashToken(token),
      kind: 'job',
      feed_id: instance.feedId,
      plugin_instance_id: instance.id,
      expires_at: sql<string>`now() + make_interval(days => ${LIFETIME_DAYS})`,
    })
    .execute();
  return token;
}
