/**
 * The permissions of folders, files and link files, for groups and for users (`files.md` section 6): six resources alike, made
 * from three kinds of objects and two kinds of grantees.
 *
 * A permission is an entry of the object's own access list. An object that inherits gets its own list when its permissions are
 * first looked at or changed.
 */
import { type RawBuilder, sql } from 'kysely';
import type { Rule } from '../access/caller.ts';
import {
  knowFileAccess,
  knowFolderAccess,
  knowLinkFileAccess,
  ownFile,
  ownFolder,
  ownLinkFile,
} from '../access/files.ts';
import type { Queries } from '../database/database.ts';
import { NotFound } from '../hypermedia/errors.ts';
import { equalNumber, exactly } from '../hypermedia/filters.ts';
import { text } from '../hypermedia/input.ts';
import { data, link, type Resource, resource } from '../hypermedia/resource.ts';
import { change, creation, item, list, type Route, SIGNED_IN } from '../hypermedia/routes.ts';
import type { TreeObject } from './access-lists.ts';
import { browserFile, FNAME, folder, linkFile } from './resources.ts';
import { changeGrant, grant, makePermissionsOwn, revoke } from './sharing.ts';
import type { Grantee } from './shelves.ts';

interface ObjectKind {
  /** Its table, and what fields and links call it. */
  readonly word: TreeObject['table'];
  readonly resource: Resource;
  /** From an access list (`entry.acl_id`) to its object, under the alias of the resource. */
  readonly join: RawBuilder<unknown>;
  readonly path: { readonly field: string; readonly sql: RawBuilder<unknown> };
  readonly base: string;
  /** Who sees with whom it is shared, and who shares it. */
  readonly know: Rule;
  readonly own: Rule;
}

const OBJECT_KINDS: readonly ObjectKind[] = [
  {
    word: 'folder',
    resource: folder,
    join: sql`join folder d on d.acl_id = entry.acl_id`,
    path: { field: 'folder_path', sql: sql`d.path` },
    base: 'filebrowser/',
    know: knowFolderAccess,
    own: ownFolder,
  },
  {
    word: 'file',
    resource: browserFile,
    join: sql`join file x on x.acl_id = entry.acl_id join folder d on d.id = x.folder_id`,
    path: { field: 'file_fname', sql: FNAME },
    base: 'filebrowser/files/',
    know: knowFileAccess,
    own: ownFile,
  },
  {
    word: 'link_file',
    resource: linkFile,
    join: sql`join link_file x on x.acl_id = entry.acl_id join folder d on d.id = x.folder_id`,
    path: { field: 'link_file_fname', sql: FNAME },
    base: 'filebrowser/linkfiles/',
    know: knowLinkFileAccess,
    own: ownLinkFile,
  },
];

interface GranteeKind {
  /** What fields, links and paths call it. */
  readonly word: 'group' | 'user';
  readonly column: Grantee['column'];
  readonly table: 'account_group' | 'account';
  readonly name: RawBuilder<unknown>;
  readonly nameField: string;
  readonly filter: string;
  /** The member of a body that names one. */
  readonly member: string;
  readonly limits: { readonly min?: number; readonly max?: number };
}

const GRANTEE_KINDS: readonly GranteeKind[] = [
  {
    word: 'group',
    column: 'group_id',
    table: 'account_group',
    name: sql`grantee.name`,
    nameField: 'group_name',
    filter: 'group_name',
    member: 'grp_name',
    limits: {},
  },
  {
    word: 'user',
    column: 'account_id',
    table: 'account',
    name: sql`grantee.username`,
    nameField: 'user_username',
    filter: 'username',
    member: 'username',
    limits: { min: 4, max: 32 },
  },
];

const levelProblem = (level: string): string | null =>
  ['r', 'w'].includes(level) ? null : 'Enter "r" (may read) or "w" (may read and change).';

async function findGrantee(database: Queries, kind: GranteeKind, name: string): Promise<Grantee | null> {
  const { rows } = await sql<{ id: number }>`
    select grantee.id from ${sql.table(kind.table)} grantee where ${kind.name} = ${name}`.execute(database);
  return rows[0] ? { column: kind.column, id: rows[0].id } : null;
}

/** `FileBrowserLinkFileUserPermission` */
function componentName(of: ObjectKind, to: GranteeKind): string {
  return `${of.resource.component}${to.word === 'group' ? 'Group' : 'User'}Permission`;
}

function permission(of: ObjectKind, to: GranteeKind): Resource {
  const objectId = of.resource.id;
  const granteeId = sql.ref(`entry.${to.column}`);
  return resource({
    name: 'permission',
    component: componentName(of, to),
    from: sql`acl_entry entry ${of.join} join ${sql.table(to.table)} grantee on grantee.id = ${granteeId}`,
    alias: 'entry',
    url: `${of.base}${to.word}permissions/{}/`,
    read: (_entry, caller) => of.know(of.resource.alias, caller),
    fields: [
      data('permission', 'string', { sql: sql`entry.level`, enumeration: 'PermissionEnum' }),
      data(`${of.word}_id`, 'integer', { sql: objectId }),
      data(of.path.field, 'string', { sql: of.path.sql }),
      data(`${to.word}_id`, 'integer', { sql: granteeId }),
      data(to.nameField, 'string', { sql: to.name }),
      link(of.word, `${of.base}{}/`, { sql: objectId }),
      link(to.word, `${to.word}s/{}/`, { sql: granteeId }),
    ],
  });
}

function creationOf(of: ObjectKind, to: GranteeKind) {
  const noSuch = (name: string) => [`There is no ${to.word} named "${name}".`];
  return creation({
    rule: of.own,
    input: {
      [to.member]: text({ ...to.limits, required: true, writeOnly: true }),
      permission: text({ check: levelProblem }),
    },
    check: async ({ services }, { [to.member]: name }) =>
      name === undefined || (await findGrantee(services.database, to, name)) ? {} : { [to.member]: noSuch(name) },
    run: async ({ transaction, path }, { [to.member]: name = '', permission: level = 'r' }) => {
      const grantee = await findGrantee(transaction, to, name);
      if (!grantee) throw new NotFound(to.word);
      return grant(transaction, { table: of.word, id: path.id ?? 0 }, grantee, level);
    },
  });
}

function permissionRoutesOf(of: ObjectKind, to: GranteeKind): readonly Route[] {
  const shown = permission(of, to);
  const changeable: Rule = (_entry, caller) => of.own(of.resource.alias, caller);
  return [
    list({
      path: `${of.base}{id}/${to.word}permissions/`,
      of: shown,
      within: { resource: { ...of.resource, read: of.know }, parameter: 'id' },
      access: SIGNED_IN,
      beforeShown: ({ services, path }) => makePermissionsOwn(services.database, { table: of.word, id: path.id ?? 0 }),
      where: ({ path }) => sql`${of.resource.id} = ${path('id')}`,
      order: sql`entry.id`,
      links: [{ rel: of.word, to: `${of.base}{id}/` }],
      search: { filters: [equalNumber('id', sql`entry.id`), exactly(to.filter, to.name)] },
      template: [to.member, 'permission'],
      create: creationOf(of, to),
    }),
    item({
      path: `${of.base}${to.word}permissions/{id}/`,
      of: shown,
      access: SIGNED_IN,
      change: change({
        rule: changeable,
        input: { permission: text({ required: true, check: levelProblem }) },
        run: ({ transaction, path }, { permission: level }) => changeGrant(transaction, of.word, path.id ?? 0, level),
      }),
      remove: {
        rule: changeable,
        run: ({ transaction, path }) => revoke(transaction, of.word, path.id ?? 0),
      },
    }),
  ];
}

export const permissionRoutes: readonly Route[] = OBJECT_KINDS.flatMap((of) =>
  GRANTEE_KINDS.flatMap((to) => permissionRoutesOf(of, to)),
);
