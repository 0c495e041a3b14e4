/**
 * Feeds and what belongs to them, as the wire shows them (`feeds.md`).
 *
 * Terminology
 *   feed   one analysis: the tree of plugin instances that grows from one of type `fs`, with a folder for their outputs
 *   jobs   the feed's plugin instances, counted by status
 *   note   a text about the feed; every feed has exactly one
 */
import { sql } from 'kysely';
import { asItsFeed, readFeed } from '../access/feeds.ts';
import { data, describedAsWritable, link, resource } from '../hypermedia/resource.ts';
import type { Status } from '../instances/status.ts';

/** The counts that a feed shows, and the status that each counts. */
const JOB_COUNTS: readonly (readonly [name: string, status: Status])[] = [
  ['created_jobs', 'created'],
  ['waiting_jobs', 'waiting'],
  ['copying_jobs', 'copying'],
  ['scheduled_jobs', 'scheduled'],
  ['started_jobs', 'started'],
  ['uploading_jobs', 'uploading'],
  ['registering_jobs', 'registeringFiles'],
  ['finished_jobs', 'finishedSuccessfully'],
  ['errored_jobs', 'finishedWithError'],
  ['cancelled_jobs', 'cancelled'],
];

const counts = JOB_COUNTS.map(
  ([name, status]) => sql`count(*) filter (where counted.status = ${sql.lit(status)}) as ${sql.id(name)}`,
);

// Every table but the first is joined from the left by a unique key, so that what a statement does not ask for costs nothing.
export const feed = resource({
  name: 'feed',
  component: 'Feed',
  from: sql`feed f
    left join account u on u.id = f.owner_id
    left join folder d on d.id = f.folder_id
    left join note n on n.feed_id = f.id
    left join lateral (select ${sql.join(counts)} from plugin_instance counted where counted.feed_id = f.id) jobs on true`,
  alias: 'f',
  url: '{}/',
  read: readFeed,
  fields: [
    data('creation_date', 'date-time'),
    data('modification_date', 'date-time'),
    data('name', 'string', { maxLength: 200 }),
    data('public', 'boolean'),
    data('owner_username', 'string', { sql: sql`u.username` }),
    data('creator_username', 'string', { sql: sql`u.username`, description: 'The same as owner_username.' }),
    data('folder_path', 'string', { sql: sql`coalesce(d.path, '')` }),
    ...JOB_COUNTS.map(([name]) => data(name, 'integer', { sql: sql.ref(`jobs.${name}`) })),
    ...describedAsWritable(
      data('deletion_status', 'string', { enumeration: 'DeletionStatusEnum' }),
      data('deletion_requested_at', 'date-time', { nullable: true }),
      data('deletion_error', 'string'),
    ),
    link('folder', 'filebrowser/{}/', { sql: sql`f.folder_id`, nullable: true }),
    link('note', 'note{}/', { sql: sql`n.id` }),
    link('group_permissions', '{}/grouppermissions/'),
    link('user_permissions', '{}/userpermissions/'),
    link('tags', '{}/tags/'),
    link('taggings', '{}/taggings/'),
    link('comments', '{}/comments/'),
    link('files', '{}/files/'),
    link('plugin_instances', '{}/plugininstances/'),
    link('owner', 'users/{}/', { sql: sql`f.owner_id` }),
  ],
});

export const note = resource({
  name: 'note',
  component: 'Note',
  from: sql`note n`,
  alias: 'n',
  url: 'note{}/',
  read: asItsFeed(readFeed),
  fields: [
    data('title', 'string', { maxLength: 100 }),
    data('content', 'string'),
    link('feed', '{}/', { sql: sql`n.feed_id` }),
  ],
});
