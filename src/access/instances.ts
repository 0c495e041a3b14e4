/** Who may see and change plugin instances and what belongs to them (`instances.md` section 2). */
import { type RawBuilder, sql } from 'kysely';
import type { CallerSql, Condition, Rule } from './caller.ts';
import { asItsFeed, inReadableFeeds, ownFeed, readFeed } from './feeds.ts';

/** Whoever made it, and administrators; a job, what its owner made in its feed. */
export const ownInstance: Rule = (alias, caller) => {
  if (caller.role === 'administrator') return sql`true`;
  if (caller.role === 'job')
    return sql`(${sql.ref(`${alias}.owner_id`)} = ${caller.id} and ${sql.ref(`${alias}.feed_id`)} = ${caller.feedId})`;
  return caller.role === 'anonymous' ? sql`false` : sql`${sql.ref(`${alias}.owner_id`)} = ${caller.id}`;
};

/** What the list of a plugin's instances shows: one's own only, also to administrators. */
export function madeBy(alias: string, caller: CallerSql): Condition {
  return caller.role === 'administrator'
    ? sql`${sql.ref(`${alias}.owner_id`)} = ${caller.id}`
    : ownInstance(alias, caller);
}

/** Instances (a table with the columns of `plugin_instance`): whoever made it, and whoever may read its feed. */
export const readInstance: Rule = (alias, caller) =>
  caller.role === 'administrator'
    ? sql`true`
    : sql`(${ownInstance(alias, caller)} or ${asItsFeed(readFeed)(alias, caller)})`;

/** Renaming and cancelling: whoever made it, and the owner of the feed whose data it works on. */
export const changeInstance: Rule = (alias, caller) =>
  caller.role === 'administrator'
    ? sql`true`
    : sql`(${ownInstance(alias, caller)} or ${asItsFeed(ownFeed)(alias, caller)})`;

/** The instance that a feed grows from goes with the feed only. */
export const deleteInstance: Rule = (alias, caller) =>
  sql`(${ownInstance(alias, caller)} and ${sql.ref(`${alias}.previous_id`)} is not null)`;

/** Rows with a column `plugin_instance_id` may be read like their instance. */
export const readWithInstance: Rule = (alias, caller) =>
  sql`exists (select from plugin_instance its_instance where its_instance.id = ${sql.ref(`${alias}.plugin_instance_id`)}
    and ${readInstance('its_instance', caller)})`;

/** What the list of all instances shows: those in feeds that the caller may read. */
export function listedInstances(alias: string, caller: CallerSql): Condition {
  return inReadableFeeds(sql.ref(`${alias}.feed_id`), caller);
}

/** Ids of an instance and all that descends from it by `previous`, if the start may be seen. */
export function treeOf(rootId: unknown, startRule: (alias: string) => Condition): RawBuilder<unknown> {
  return sql`with recursive below(id) as (
      select root.id from plugin_instance root where root.id = ${rootId}::bigint and ${startRule('root')}
      union all
      select child.id from plugin_instance child join below on child.previous_id = below.id
    ) select below.id from below`;
}
