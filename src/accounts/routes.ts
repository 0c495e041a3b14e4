/** Routes of accounts, groups, download tokens and the instance (`accounts.md`). */
import { sql } from 'kysely';
import { ownAccount, ownRow } from '../access/accounts.ts';
import { anyone } from '../access/caller.ts';
import type { Config } from '../config.ts';
import { InvalidFields, invalid, invalidObject, NotFound } from '../hypermedia/errors.ts';
import { contains, equalNumber, exactly } from '../hypermedia/filters.ts';
import { email, text } from '../hypermedia/input.ts';
import { type ActionCall, change, creation, item, list, PUBLIC, type Route, SIGNED_IN } from '../hypermedia/routes.ts';
import { downloadToken, group, instance, membership, user } from './resources.ts';
import {
  changeAccount,
  createAccount,
  DEFAULT_GROUPS,
  storeGreeting,
  takenProblems,
  usernameProblem,
} from './rules.ts';
import { createDownloadToken } from './tokens.ts';

const withoutSlash = (name: string): string | null => (name.includes('/') ? 'The name may not contain "/".' : null);

const password = { min: 8, max: 100, writeOnly: true };
const STAFF_WRITE = { read: 'signed in', write: 'staff' } as const;

const signUp = creation({
  input: {
    username: text({ min: 4, max: 32, check: usernameProblem }),
    password: text({ ...password, required: true }),
    email: email({ required: true }),
  },
  check: ({ services }, { username, email: address }) => takenProblems(services.database, { username, email: address }),
  run: async ({ services, transaction, afterCommit }, { username, ...input }) => {
    if (username === undefined) throw invalid('username', 'This field is required.');
    const id = await createAccount(transaction, { ...input, username });
    afterCommit(() => storeGreeting(services, { id, username }));
    return id;
  },
});

/** Sign-up shows no accounts; it only makes them. */
function userRoutes(config: Config): readonly Route[] {
  return [
    list({
      path: 'users/',
      of: user,
      access: PUBLIC,
      where: () => sql`false`,
      order: sql`u.id`,
      ...(config.signUp && { create: signUp }),
    }),
    item({
      path: 'users/{id}/',
      of: user,
      access: SIGNED_IN,
      change: change({
        rule: ownAccount,
        input: { password: text(password), email: email({ required: true }) },
        check: ({ services, path }, { email: address }) =>
          takenProblems(services.database, { email: address }, path.id),
        run: async ({ transaction, caller, path }, input) => {
          const own = caller.id === path.id;
          await changeAccount(transaction, path.id ?? 0, input, own ? caller.tokenId : null);
        },
      }),
    }),
    list({
      path: 'users/{id}/groups/',
      of: group,
      within: { resource: user, parameter: 'id' },
      access: SIGNED_IN,
      where: ({ path }) => sql`g.id in (select m.group_id from membership m where m.account_id = ${path('id')})`,
      order: sql`g.id`,
      links: [{ rel: 'user', to: 'users/{id}/' }],
    }),
  ];
}

const groupRoutes: readonly Route[] = [
  list({
    path: 'groups/',
    of: group,
    access: STAFF_WRITE,
    order: sql`g.id`,
    search: {
      filters: [equalNumber('id', sql`g.id`), exactly('name', sql`g.name`), contains('name_icontains', sql`g.name`)],
    },
    create: creation({
      input: { name: text({ max: 150, required: true, check: withoutSlash }) },
      run: async ({ transaction }, { name }) => {
        const made = await transaction
          .insertInto('account_group')
          .values({ name })
          .onConflict((conflict) => conflict.doNothing())
          .returning('id')
          .executeTakeFirst();
        if (!made) throw invalid('name', 'A group with this name already exists. Choose another name.');
        return made.id;
      },
    }),
  }),
  item({
    path: 'groups/{id}/',
    of: group,
    access: STAFF_WRITE,
    remove: {
      rule: anyone,
      run: async ({ transaction, path }) => {
        const { name } = await transaction
          .selectFrom('account_group')
          .select('name')
          .where('id', '=', path.id ?? 0)
          .forUpdate()
          .executeTakeFirstOrThrow();
        if (DEFAULT_GROUPS.some((protectedName) => protectedName === name))
          throw invalidObject(`The group "${name}" is needed by the system and cannot be deleted.`);
        await transaction
          .deleteFrom('account_group')
          .where('id', '=', path.id ?? 0)
          .execute();
      },
    },
  }),
  list({
    path: 'groups/{id}/users/',
    of: membership,
    within: { resource: group, parameter: 'id' },
    access: STAFF_WRITE,
    where: ({ path }) => sql`m.group_id = ${path('id')}`,
    order: sql`m.id`,
    links: [{ rel: 'group', to: 'groups/{id}/' }],
    search: { filters: [equalNumber('id', sql`m.id`), exactly('username', sql`u.username`)] },
    create: creation({
      input: { username: text({ min: 4, max: 32, required: true, writeOnly: true }) },
      run: addMember,
    }),
  }),
  item({
    path: 'groups/users/{id}/',
    of: membership,
    access: STAFF_WRITE,
    remove: {
      rule: anyone,
      run: async ({ transaction, path }) => {
        await transaction
          .deleteFrom('membership')
          .where('id', '=', path.id ?? 0)
          .execute();
      },
    },
  }),
];

async function addMember({ transaction, path }: ActionCall, { username }: { username: string }): Promise<number> {
  const group_id = path.id ?? 0;
  const member = await transaction
    .selectFrom('account')
    .select('id')
    .where('username', '=', username)
    .executeTakeFirst();
  // nested as the reference nests it
  if (!member) throw new InvalidFields({ username: { username: [`There is no user named "${username}".`] } });
  const made = await transaction
    .insertInto('membership')
    .values({ group_id, account_id: member.id })
    .onConflict((conflict) => conflict.doNothing())
    .returning('id')
    .executeTakeFirst();
  if (!made) throw invalidObject(`The user "${username}" is already a member of this group.`);
  return made.id;
}

const downloadTokenRoutes: readonly Route[] = [
  list({
    path: 'downloadtokens/',
    of: downloadToken,
    access: SIGNED_IN,
    where: ({ caller }) => ownRow('d', caller),
    order: sql`u.username, d.creation_date, d.id`,
    links: [{ rel: 'owner', to: 'users/{caller}/' }],
    search: { filters: [equalNumber('id', sql`d.id`)] },
    template: [],
    create: creation({
      input: { token: text({ max: 300 }) },
      run: async ({ transaction, caller }) => {
        if (caller.id === null) throw new NotFound('account');
        const { id, token } = await createDownloadToken(transaction, caller.id);
        return { id, shownOnce: { token } };
      },
    }),
  }),
  item({ path: 'downloadtokens/{id}/', of: downloadToken, access: SIGNED_IN }),
];

export function accountRoutes(config: Config): readonly Route[] {
  return [
    ...userRoutes(config),
    ...groupRoutes,
    ...downloadTokenRoutes,
    item({ path: 'chrisinstance/{id}/', of: instance, access: SIGNED_IN, singleton: true }),
  ];
}
