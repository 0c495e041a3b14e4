/**
 * Who may see and change feeds, and what belongs to them (`feeds.md` section 2).
 *
 * Terminology
 *   member   the feed's owner, or somebody it is shared with: as a user, or as one of a group
 *
 * A rule asks about one row by its keys; a set lists the ids that a caller may see, from the caller's side, for lists.
 */
import { type RawBuilder, sql } from 'kysely';
import type { CallerSql, Condition, Rule } from './caller.ts';

/** A job sees the one feed that it runs in. */
function withinReach(feedId: RawBuilder<unknown>, caller: CallerSql): Condition {
  return caller.role === 'job' ? sql`${feedId} = ${caller.feedId}` : sql`true`;
}

function isMember(alias: string, caller: CallerSql): Condition {
  const feed = sql.ref(alias);
  return sql`${withinReach(sql.ref(`${alias}.id`), caller)} and (${feed}.owner_id = ${caller.id}
    or exists (select from feed_user_permission shared where shared.account_id = ${caller.id} and shared.feed_id = ${feed}.id)
    or exists (select from membership m join feed_group_permission shared on shared.group_id = m.group_id
               where m.account_id = ${caller.id} and shared.feed_id = ${feed}.id))`;
}

/** Feeds (a table with the columns of `feed`): members, administrators; everybody when it is public. */
export const readFeed: Rule = (alias, caller) => {
  if (caller.role === 'administrator') return sql`true`;
  const isPublic = sql<boolean>`${sql.ref(`${alias}.public`)} and ${withinReach(sql.ref(`${alias}.id`), caller)}`;
  return caller.role === 'anonymous' ? isPublic : sql`((${isPublic}) or (${isMember(alias, caller)}))`;
};

/** Its name, its note, what hangs on it: members and administrators. */
export const changeFeed: Rule = (alias, caller) => {
  if (caller.role === 'administrator') return sql`true`;
  return caller.role === 'anonymous' ? sql`false` : isMember(alias, caller);
};

/** Running plugins in it: members; administrators have no exemption. */
export const runInFeed: Rule = (alias, caller) => (caller.role === 'anonymous' ? sql`false` : isMember(alias, caller));

/** Deleting it, publishing it: its owner and administrators, never a job. */
export const ownFeed: Rule = (alias, caller) => {
  if (caller.role === 'administrator') return sql`true`;
  return caller.role === 'user' ? sql`${sql.ref(`${alias}.owner_id`)} = ${caller.id}` : sql`false`;
};

/** The rule for rows with a column `feed_id` that follow their feed. */
export function asItsFeed(rule: Rule): Rule {
  return (alias, caller) =>
    sql`exists (select from feed its_feed where its_feed.id = ${sql.ref(`${alias}.feed_id`)} and ${rule('its_feed', caller)})`;
}

/** Ids of the feeds that a signed-in caller is a member of. */
function memberFeeds(caller: CallerSql): RawBuilder<unknown> {
  return sql`select own.id from feed own where own.owner_id = ${caller.id} and ${withinReach(sql.ref('own.id'), caller)}
    union select shared.feed_id from feed_user_permission shared
      where shared.account_id = ${caller.id} and ${withinReach(sql.ref('shared.feed_id'), caller)}
    union select shared.feed_id from membership m join feed_group_permission shared on shared.group_id = m.group_id
      where m.account_id = ${caller.id} and ${withinReach(sql.ref('shared.feed_id'), caller)}`;
}

/** What the list of feeds shows: a member's feeds; to administrators all that are not public; to anonymous callers none. */
export function listedFeeds(alias: string, caller: CallerSql): Condition {
  if (caller.role === 'administrator') return sql`not ${sql.ref(`${alias}.public`)}`;
  return caller.role === 'anonymous' ? sql`false` : sql`${sql.ref(`${alias}.id`)} in (${memberFeeds(caller)})`;
}

/** Rows of all feeds that the caller may read. @param feedId column that holds the feed's id */
export function inReadableFeeds(feedId: RawBuilder<unknown>, caller: CallerSql): Condition {
  if (caller.role === 'administrator') return sql`true`;
  const published = sql`select open.id from feed open where open.public and ${withinReach(sql.ref('open.id'), caller)}`;
  return caller.role === 'anonymous'
    ? sql`${feedId} in (${published})`
    : sql`${feedId} in (${published} union ${memberFeeds(caller)})`;
}

/** Rows of feeds that the caller is a member of; all to administrators, none to anonymous callers. */
export function inMemberFeeds(feedId: RawBuilder<unknown>, caller: CallerSql): Condition {
  if (caller.role === 'administrator') return sql`true`;
  return caller.role === 'anonymous' ? sql`false` : sql`${feedId} in (${memberFeeds(caller)})`;
}
