/** Routes of the files that jobs have made (`contract.md`, and `generation5.md` section 2.1). */
import { type RawBuilder, sql } from 'kysely';
import { inMemberFeeds } from '../access/feeds.ts';
import { type Download, sendFile } from '../files/download.ts';
import type { Exchange } from '../hypermedia/dispatch.ts';
import { Forbidden, NotAuthenticated, NotFound } from '../hypermedia/errors.ts';
import { contains, equalNumber, exactly, type Filter, since, startsWith, until } from '../hypermedia/filters.ts';
import { item, list, PUBLIC, type Route, SIGNED_IN, special } from '../hypermedia/routes.ts';
import { instance } from '../instances/resources.ts';
import { feedFile, listedFeedFile } from './file-resources.ts';
import { feed } from './resources.ts';

/** By path, descending, folder by folder. */
const BY_PATH = sql`d.path desc, x.name desc`;

const FNAME: RawBuilder<unknown> = sql`(d.path || '/' || x.name)`;

const FILTERS: readonly Filter[] = [
  equalNumber('id', sql`x.id`),
  since('min_creation_date', sql`x.creation_date`),
  until('max_creation_date', sql`x.creation_date`),
  equalNumber('plugin_inst_id', sql`i.id`),
  equalNumber('feed_id', sql`i.feed_id`),
  startsWith('fname', FNAME),
  exactly('fname_exact', FNAME),
  contains('fname_icontains', FNAME),
];

interface FoundFile extends Download {
  readonly isReadable: boolean;
}

async function findFile({ call }: Exchange): Promise<Download> {
  const { services, caller, path } = call;
  const { rows } = await sql<FoundFile>`
    select x.id, ${FNAME} as path, coalesce(x.storage_key, ${FNAME}) as "storagePath", x.size_bytes as "sizeBytes",
      x.sha256, (${feedFile.read('x', caller)}) as "isReadable"
    from ${feedFile.from} where x.id = ${path.id ?? 0}::bigint`.execute(services.database);
  const [found] = rows;
  if (!found) throw new NotFound(feedFile.name);
  if (!found.isReadable) throw caller.role === 'anonymous' ? new NotAuthenticated() : new Forbidden();
  return found;
}

export const feedFileRoutes: readonly Route[] = [
  list({
    path: 'files/',
    of: listedFeedFile,
    access: SIGNED_IN,
    where: ({ caller }) => inMemberFeeds(sql`i.feed_id`, caller),
    order: BY_PATH,
    search: { filters: FILTERS },
  }),
  item({ path: 'files/{id}/', of: feedFile, access: PUBLIC }),
  special({
    path: 'files/{id}/*',
    access: PUBLIC,
    representation: 'its own',
    downloadToken: true,
    methods: {
      GET: {
        summary: 'Download a file that a job has made.',
        handle: async (exchange) => sendFile(exchange.reply, exchange.call.services.storage, await findFile(exchange)),
      },
    },
  }),
  list({
    path: '{id}/files/',
    of: listedFeedFile,
    within: { resource: feed, parameter: 'id' },
    access: PUBLIC,
    where: ({ path }) => sql`i.feed_id = ${path('id')}`,
    operations: { GET: 'feed_files_list' },
    order: BY_PATH,
    links: [{ rel: 'feed', to: '{id}/' }],
  }),
  list({
    path: 'plugins/instances/{id}/files/',
    of: listedFeedFile,
    within: { resource: instance, parameter: 'id' },
    access: PUBLIC,
    where: ({ path }) => sql`i.id = ${path('id')}`,
    order: BY_PATH,
    links: [{ rel: 'plugin_inst', to: 'plugins/instances/{id}/' }],
  }),
];
