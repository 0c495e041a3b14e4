/** Routes of the files that jobs have made (`contract.md`, and `generation5.md` section 2.1). */
import { sql } from 'kysely';
import { inMemberFeeds } from '../access/feeds.ts';
import { downloadRoute } from '../files/download-route.ts';
import { beginningOfPath, exactPath, oneOfEachFolder } from '../files/name-filters.ts';
import { FNAME } from '../files/resources.ts';
import { contains, equalNumber, type Filter, since, until } from '../hypermedia/filters.ts';
import { item, list, PUBLIC, type Route, SIGNED_IN } from '../hypermedia/routes.ts';
import { instance } from '../instances/resources.ts';
import { FILES_OF_INSTANCES, feedFile } from './file-resources.ts';
import { feed } from './resources.ts';

/** By path, descending, folder by folder; outputs of jobs that are seen here are few among all files. */
const BY_PATH = sql`d.path || '' desc, x.name desc`;

/** Paths of feeds as they were written before homes had folders of their own. */
const SHORT_FNAME = sql`regexp_replace(${FNAME}, '^home/([^/]+)/feeds/', '\\1/')`;

const FILTERS: readonly Filter[] = [
  equalNumber('id', sql`x.id`),
  since('min_creation_date', sql`x.creation_date`),
  until('max_creation_date', sql`x.creation_date`),
  equalNumber('plugin_inst_id', sql`i.id`),
  equalNumber('feed_id', sql`i.feed_id`),
  beginningOfPath('fname'),
  exactPath('fname_exact'),
  contains('fname_icontains', FNAME),
  oneOfEachFolder('fname_nslashes', SHORT_FNAME),
];

export const feedFileRoutes: readonly Route[] = [
  list({
    path: 'files/',
    of: feedFile,
    from: FILES_OF_INSTANCES,
    access: SIGNED_IN,
    where: ({ caller }) => inMemberFeeds(sql`i.feed_id`, caller),
    order: BY_PATH,
    search: { filters: FILTERS },
  }),
  item({ path: 'files/{id}/', of: feedFile, access: PUBLIC }),
  downloadRoute({ path: 'files/{id}/*', of: feedFile, rule: feedFile.read }),
  list({
    path: '{id}/files/',
    of: feedFile,
    from: FILES_OF_INSTANCES,
    within: { resource: feed, parameter: 'id' },
    access: PUBLIC,
    where: ({ path }) => sql`i.feed_id = ${path('id')}`,
    operations: { GET: 'feed_files_list' },
    order: BY_PATH,
    links: [{ rel: 'feed', to: '{id}/' }],
  }),
  list({
    path: 'plugins/instances/{id}/files/',
    of: feedFile,
    from: FILES_OF_INSTANCES,
    within: { resource: instance, parameter: 'id' },
    access: PUBLIC,
    where: ({ path }) => sql`i.id = ${path('id')}`,
    order: BY_PATH,
    links: [
      { rel: 'feed', to: '{feed_id}/' },
      { rel: 'plugin_inst', to: 'plugins/instances/{id}/' },
    ],
  }),
];
