/**
 * Folders, files and link files as the wire shows them (`files.md`).
 *
 * Terminology
 *   file       one row, seen through several resources: in the file browser by whoever may read it, as a user file by its owner
 *   link file  a shortcut: its content is the path of a folder or file
 *   public     readable by everybody, by its own access list or that of a folder above
 */
import { type RawBuilder, sql } from 'kysely';
import type { Rule } from '../access/caller.ts';
import { ownFile, readFile, readFolder, readLinkFile } from '../access/files.ts';
import { data, describedAsWritable, type Field, link, type Resource, resource } from '../hypermedia/resource.ts';
import { PATH_LIMIT_CHARACTERS } from './paths.ts';

const publicByList = (listId: RawBuilder<unknown>): RawBuilder<unknown> =>
  sql`coalesce((select list.public from acl list where list.id = ${listId}), false)`;

export const folder = resource({
  name: 'folder',
  component: 'FileBrowserFolder',
  from: sql`folder d left join account u on u.id = d.owner_id`,
  alias: 'd',
  url: 'filebrowser/{}/',
  read: readFolder,
  fields: [
    data('creation_date', 'date-time'),
    data('path', 'string', { maxLength: PATH_LIMIT_CHARACTERS }),
    data('public', 'boolean', { sql: publicByList(sql`folder_acl(d.id)`) }),
    data('owner_username', 'string', { sql: sql`u.username` }),
    ...describedAsWritable(
      data('deletion_status', 'string', { enumeration: 'DeletionStatusEnum' }),
      data('deletion_requested_at', 'date-time', { nullable: true }),
      data('deletion_error', 'string'),
    ),
    link('parent', 'filebrowser/{}/', { sql: sql`d.parent_id`, nullable: true }),
    link('children', 'filebrowser/{}/children/'),
    link('files', 'filebrowser/{}/files/'),
    link('link_files', 'filebrowser/{}/linkfiles/'),
    link('group_permissions', 'filebrowser/{}/grouppermissions/'),
    link('user_permissions', 'filebrowser/{}/userpermissions/'),
    link('owner', 'users/{}/', { sql: sql`d.owner_id` }),
  ],
});

/** The whole path of a file or link file with the alias `x` in the folder `d`. */
export const FNAME: RawBuilder<unknown> = sql`case when d.path = '' then x.name else d.path || '/' || x.name end`;

interface FileView {
  readonly name: string;
  readonly component: string;
  readonly table: 'file' | 'link_file';
  /** Where its items and downloads are. */
  readonly base: string;
  /** Where its permissions are. */
  readonly permissions: string;
  readonly read: Rule;
  readonly where?: RawBuilder<unknown>;
  readonly size: RawBuilder<unknown>;
  readonly links?: readonly Field[];
  readonly more?: readonly Field[];
}

function fileView(view: FileView): Resource {
  return resource({
    name: view.name,
    component: view.component,
    from: sql`${sql.table(view.table)} x join folder d on d.id = x.folder_id left join account u on u.id = x.owner_id`,
    alias: 'x',
    url: `${view.base}{}/`,
    read: view.read,
    ...(view.where && { where: view.where }),
    fields: [
      data('creation_date', 'date-time'),
      ...(view.more ?? []),
      ...describedAsWritable(data('fname', 'string', { sql: FNAME, nullable: true })),
      data('fsize', 'integer', { sql: view.size }),
      data('public', 'boolean', { sql: publicByList(sql`coalesce(x.acl_id, folder_acl(x.folder_id))`) }),
      data('owner_username', 'string', { sql: sql`u.username` }),
      link('file_resource', `${view.base}{}`, { sql: sql`x.id || '/' || x.name` }),
      ...(view.links ?? []),
      link('parent_folder', 'filebrowser/{}/', { sql: sql`x.folder_id` }),
      link('group_permissions', `${view.permissions}{}/grouppermissions/`),
      link('user_permissions', `${view.permissions}{}/userpermissions/`),
      link('owner', 'users/{}/', { sql: sql`x.owner_id` }),
    ],
  });
}

export const browserFile = fileView({
  name: 'file',
  component: 'FileBrowserFile',
  table: 'file',
  base: 'filebrowser/files/',
  permissions: 'filebrowser/files/',
  read: readFile,
  size: sql`x.size_bytes`,
});

/** Files below anybody's home, to their owner and to administrators only. */
export const userFile = fileView({
  name: 'user file',
  component: 'UserFile',
  table: 'file',
  base: 'userfiles/',
  permissions: 'filebrowser/files/',
  read: ownFile,
  where: sql`starts_with(d.path, 'home/')`,
  size: sql`x.size_bytes`,
});

/** The targets of links are shown whether or not the reader may open them. */
export const linkFile = fileView({
  name: 'link file',
  component: 'FileBrowserLinkFile',
  table: 'link_file',
  base: 'filebrowser/linkfiles/',
  permissions: 'filebrowser/linkfiles/',
  read: readLinkFile,
  size: sql`octet_length(x.target_path)`,
  more: describedAsWritable(data('path', 'string', { sql: sql`x.target_path`, maxLength: PATH_LIMIT_CHARACTERS })),
  links: [
    link('linked_folder', 'filebrowser/{}/', {
      nullable: true,
      sql: sql`(select target.id from folder target where target.path = x.target_path)`,
    }),
    link('linked_file', 'filebrowser/files/{}/', {
      nullable: true,
      sql: sql`(select target.id from file target join folder its on its.id = target.folder_id
        where its.path = left(x.target_path, greatest(length(x.target_path) - length(target.name) - 1, 0))
          and target.name = regexp_replace(x.target_path, '^.*/', ''))`,
    }),
  ],
});
