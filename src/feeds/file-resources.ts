/**
 * The outputs of a feed's jobs, as the older generation of clients and the commission see them (`generation5.md` section 2.1).
 *
 * A file belongs to the instance whose output folder is the nearest one above it.
 */
import { sql } from 'kysely';
import { asItsFeed, readFeed } from '../access/feeds.ts';
import { FNAME } from '../files/resources.ts';
import { data, link, resource } from '../hypermedia/resource.ts';

/** From a file to its instance. */
const ONE_FILE = sql`file x
  join folder d on d.id = x.folder_id
  left join account u on u.id = x.owner_id
  join lateral (
    with recursive up(id, parent_id, depth) as (
      select d.id, d.parent_id, 0
      union all
      select above.id, above.parent_id, up.depth + 1 from folder above join up on above.id = up.parent_id
    )
    select instance.id, instance.feed_id
    from up join plugin_instance instance on instance.output_folder_id = up.id
    order by up.depth limit 1
  ) i on true`;

/** From instances to their files, for lists: the folders below an output folder are a range of the index on paths. */
export const FILES_OF_INSTANCES = sql`plugin_instance i
  join folder o on o.id = i.output_folder_id
  join folder d on d.path >= o.path and d.path < o.path || '0'
    and (d.path = o.path or starts_with(d.path, o.path || '/'))
  join file x on x.folder_id = d.id
  left join account u on u.id = x.owner_id`;

export const feedFile = resource({
  name: 'feed file',
  component: 'FeedFile',
  from: ONE_FILE,
  alias: 'x',
  url: 'files/{}/',
  read: (_alias, caller) => asItsFeed(readFeed)('i', caller),
  fields: [
    data('creation_date', 'date-time'),
    data('fname', 'string', { sql: FNAME }),
    data('fsize', 'integer', { sql: sql`x.size_bytes` }),
    data('public', 'boolean', {
      sql: sql`coalesce((select list.public from acl list where list.id = coalesce(x.acl_id, folder_acl(x.folder_id))), false)`,
    }),
    data('owner_username', 'string', { sql: sql`u.username` }),
    data('feed_id', 'integer', { sql: sql`i.feed_id` }),
    data('plugin_inst_id', 'integer', { sql: sql`i.id` }),
    link('parent_folder', 'filebrowser/{}/', { sql: sql`x.folder_id` }),
    link('group_permissions', 'filebrowser/files/{}/grouppermissions/'),
    link('user_permissions', 'filebrowser/files/{}/userpermissions/'),
    link('file_resource', 'files/{}', { sql: sql`x.id || '/' || x.name` }),
    link('feed', '{}/', { sql: sql`i.feed_id` }),
    link('plugin_inst', 'plugins/instances/{}/', { sql: sql`i.id` }),
    link('owner', 'users/{}/', { sql: sql`x.owner_id` }),
  ],
});
