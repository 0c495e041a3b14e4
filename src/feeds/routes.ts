/** Routes of feeds and their notes (`feeds.md`); the list of feeds is the API's home page. */
import { sql } from 'kysely';
import { asItsFeed, changeFeed, listedFeeds, ownFeed } from '../access/feeds.ts';
import { DELETION_STATUSES } from '../enumerations.ts';
import {
  atLeastNumber,
  atMostNumber,
  contains,
  equalNumber,
  exactly,
  type Filter,
  flag,
  oneOf,
  since,
  startsWith,
  until,
} from '../hypermedia/filters.ts';
import { boolean, text } from '../hypermedia/input.ts';
import { change, item, type ListLink, list, PUBLIC, type Route } from '../hypermedia/routes.ts';
import { requestFeedDeletion } from '../instances/deletion.ts';
import { instanceOfFeed } from '../instances/resources.ts';
import { NEWEST_INSTANCES_FIRST } from '../instances/routes.ts';
import { hasFileWithWords } from './file-search.ts';
import { feed, note } from './resources.ts';
import { changeFeedBy, changeNote } from './rules.ts';

const HOME_LINKS: readonly ListLink[] = [
  { rel: 'chrisinstance', to: 'chrisinstance/1/' },
  { rel: 'public_feeds', to: 'publicfeeds/' },
  { rel: 'files', to: 'files/' },
  { rel: 'compute_resources', to: 'computeresources/' },
  { rel: 'plugin_metas', to: 'plugins/metas/' },
  { rel: 'plugins', to: 'plugins/' },
  { rel: 'plugin_instances', to: 'plugins/instances/' },
  { rel: 'pipelines', to: 'pipelines/' },
  { rel: 'workflows', to: 'pipelines/workflows/' },
  { rel: 'tags', to: 'tags/' },
  { rel: 'pipelinesourcefiles', to: 'pipelines/sourcefiles/' },
  { rel: 'userfiles', to: 'userfiles/' },
  { rel: 'pacs', to: 'pacs/' },
  { rel: 'pacsqueries', to: 'pacs/queries/' },
  { rel: 'pacsfiles', to: 'pacs/files/' },
  { rel: 'pacsseries', to: 'pacs/series/' },
  { rel: 'filebrowser', to: 'filebrowser/' },
  { rel: 'download_tokens', to: 'downloadtokens/', shownTo: 'signed in' },
  { rel: 'groups', to: 'groups/', shownTo: 'signed in' },
  { rel: 'user', to: 'users/{caller}/', shownTo: 'signed in' },
  { rel: 'admin', to: 'admin:', shownTo: 'staff' },
];

const FILTERS: readonly Filter[] = [
  equalNumber('id', sql`f.id`),
  atLeastNumber('min_id', sql`f.id`),
  atMostNumber('max_id', sql`f.id`),
  contains('name', sql`f.name`),
  exactly('name_exact', sql`f.name`),
  startsWith('name_startswith', sql`f.name`),
  since('min_creation_date', sql`f.creation_date`),
  until('max_creation_date', sql`f.creation_date`),
  hasFileWithWords('files_fname_icontains'),
  oneOf('deletion_status', sql`f.deletion_status`, DELETION_STATUSES),
  flag('public', sql`f.public`),
];

const NEWEST_FIRST = sql`f.creation_date desc, f.id desc`;

export const feedRoutes: readonly Route[] = [
  list({
    path: '',
    of: feed,
    access: PUBLIC,
    where: ({ caller }) => listedFeeds('f', caller),
    order: NEWEST_FIRST,
    links: HOME_LINKS,
    search: { filters: FILTERS, operation: 'search_list' },
    operations: { GET: 'root_list' },
  }),
  list({
    path: 'publicfeeds/',
    of: feed,
    access: PUBLIC,
    where: () => sql`f.public`,
    order: NEWEST_FIRST,
    search: { filters: FILTERS },
  }),
  item({
    path: '{id}/',
    of: feed,
    access: PUBLIC,
    change: change({
      rule: changeFeed,
      input: { name: text({ max: 200, blank: true }), public: boolean({ tickBox: true }) },
      run: changeFeedBy,
    }),
    remove: {
      rule: ownFeed,
      inBackground: true,
      run: ({ transaction, path }) => requestFeedDeletion(transaction, path.id ?? 0),
    },
    operations: { GET: 'root_retrieve', PUT: 'root_update', DELETE: 'root_destroy' },
  }),
  item({
    path: 'note{id}/',
    of: note,
    access: PUBLIC,
    change: change({
      rule: asItsFeed(changeFeed),
      input: { title: text({ max: 100, blank: true }), content: text({ blank: true }) },
      run: changeNote,
    }),
  }),
  list({
    path: '{id}/plugininstances/',
    of: instanceOfFeed,
    within: { resource: feed, parameter: 'id' },
    access: PUBLIC,
    where: ({ path }) => sql`i.feed_id = ${path('id')}`,
    order: NEWEST_INSTANCES_FIRST,
    links: [{ rel: 'feed', to: '{id}/' }],
  }),
];
