/**
 * Accounts, groups and what belongs to them, as the wire shows them (`accounts.md`).
 *
 * Terminology
 *   account     a user: name, e-mail, password, role
 *   membership  one account in one group; its id is that of the pair
 *   staff       may use the administration API; administrators may also act for everybody
 */
import { sql } from 'kysely';
import { ownRow } from '../access/accounts.ts';
import { signedIn } from '../access/caller.ts';
import { data, describedAsWritable, link, resource } from '../hypermedia/resource.ts';

export const user = resource({
  name: 'user',
  component: 'User',
  from: sql`account u`,
  alias: 'u',
  url: 'users/{}/',
  read: signedIn,
  fields: [
    data('username', 'string', { minLength: 4, maxLength: 32, readOnly: true }),
    data('email', 'email'),
    data('is_staff', 'boolean'),
    link('groups', 'users/{}/groups/'),
    link('plugin', 'plugins/{}/', {
      many: true,
      sql: sql`array(select p.id from plugin p where p.owner_id = u.id order by p.id)`,
    }),
  ],
});

export const group = resource({
  name: 'group',
  component: 'Group',
  from: sql`account_group g`,
  alias: 'g',
  url: 'groups/{}/',
  read: signedIn,
  fields: [data('name', 'string', { maxLength: 150 }), link('users', 'groups/{}/users/')],
});

export const membership = resource({
  name: 'group membership',
  component: 'GroupUser',
  from: sql`membership m join account_group g on g.id = m.group_id join account u on u.id = m.account_id`,
  alias: 'm',
  url: 'groups/users/{}/',
  read: signedIn,
  fields: [
    data('group_id', 'integer'),
    data('group_name', 'string', { sql: sql`g.name` }),
    data('user_id', 'integer', { sql: sql`m.account_id` }),
    data('user_username', 'string', { sql: sql`u.username` }),
    data('user_email', 'email', { sql: sql`u.email` }),
    link('group', 'groups/{}/', { sql: sql`m.group_id` }),
    link('user', 'users/{}/', { sql: sql`m.account_id` }),
  ],
});

export const instance = resource({
  name: 'instance',
  component: 'ChrisInstance',
  from: sql`chris_instance i`,
  alias: 'i',
  url: 'chrisinstance/{}/',
  read: signedIn,
  fields: [
    data('creation_date', 'date-time'),
    ...describedAsWritable(
      data('name', 'string', { maxLength: 100 }),
      data('uuid', 'uuid'),
      data('job_id_prefix', 'string', { maxLength: 100 }),
      data('description', 'string', { maxLength: 600 }),
    ),
  ],
});

/** The token itself is shown once, in the answer to its creation; only its hash is kept. */
export const downloadToken = resource({
  name: 'download token',
  component: 'FileDownloadToken',
  from: sql`download_token d join account u on u.id = d.account_id`,
  alias: 'd',
  url: 'downloadtokens/{}/',
  read: ownRow,
  fields: [
    data('creation_date', 'date-time'),
    data('token', 'string', { sql: sql`repeat('*', 40)`, maxLength: 300 }),
    data('owner_username', 'string', { sql: sql`u.username` }),
    link('owner', 'users/{}/', { sql: sql`d.account_id` }),
  ],
});
