/** One object of every kind, made by one user and shared with another, and one caller of every kind. */
import { randomBytes } from 'node:crypto';
import { sql } from 'kysely';
import { SESSION_COOKIE } from '../../src/accounts/sessions.ts';
import { hashToken } from '../../src/accounts/tokens.ts';
import type { Answer } from '../helpers/client.ts';
import type { Credentials } from '../helpers/server.ts';
import { type Bench, parameter } from '../instances/bench.ts';

/** In the order of the table's columns. */
export const CALLERS = [
  'anonymous',
  'stranger',
  'member',
  'owner',
  'staff',
  'administrator',
  'job elsewhere',
  'job here',
  'session without proof',
] as const;

export type CallerName = (typeof CALLERS)[number];
/** The headers that a caller sends. */
export type Callers = Readonly<Record<CallerName, Readonly<Record<string, string>>>>;

export interface World {
  readonly callers: Callers;
  /** The number that a declared path such as `groups/{id}/` gets; feeds where nothing else is said. */
  readonly idFor: (path: string) => number;
  /** What a writing request brings: something that is right, where the answer would else be about the body. */
  readonly bodyFor: (path: string) => Body;
}

export interface Body {
  readonly type: string;
  readonly text: string;
}

function json(value: object): Body {
  return { type: 'application/json', text: JSON.stringify(value) };
}

/** Without the proof that it comes from the page. */
const LOG_IN_FORM: Body = { type: 'application/x-www-form-urlencoded', text: 'username=someone&password=something' };

export interface People {
  readonly owner: Credentials & { readonly id: number };
  readonly member: Credentials & { readonly id: number };
  readonly stranger: Credentials & { readonly id: number };
  readonly staff: Credentials & { readonly id: number };
}

function basic({ username, password }: Credentials): Record<string, string> {
  return { authorization: `Basic ${Buffer.from(`${username}:${password}`).toString('base64')}` };
}

function made(answer: Answer): number {
  if (answer.status !== 201) throw new Error(`the world could not be made: ${answer.status} ${answer.text}`);
  return Number(answer.json.id);
}

export async function makePeople(bench: Bench): Promise<People> {
  const named = [parameter('plugininstances', 'str', { optional: true, default: '' })];
  await bench.plugin('pl-topologicalcopy', 'ts', { parameters: named });
  const staff = await bench.user('staff');
  await bench.database.updateTable('account').set({ is_staff: true }).where('id', '=', staff.id).execute();
  return {
    owner: await bench.user('owner'),
    member: await bench.user('member'),
    stranger: await bench.user('stranger'),
    staff,
  };
}

const PARAMETERS = [
  parameter('s', 'str'),
  parameter('i', 'int'),
  parameter('f', 'float'),
  parameter('b', 'bool'),
  parameter('p', 'path'),
  parameter('u', 'unextpath'),
];

let worlds = 0;

class Maker {
  readonly #bench: Bench;
  readonly #people: People;
  readonly #word: string;
  constructor(bench: Bench, people: People) {
    worlds += 1;
    this.#bench = bench;
    this.#people = people;
    this.#word = `w${worlds}`;
  }

  async #post(path: string, json: object, as: Credentials = this.#people.owner): Promise<number> {
    return made(await this.#bench.request('POST', path, { as, json }));
  }

  async #row(table: string, values: Readonly<Record<string, unknown>>): Promise<number> {
    const columns = Object.keys(values).map((name) => sql.id(name));
    const { rows } = await sql<{ id: number }>`insert into ${sql.table(table)} (${sql.join(columns)})
      values (${sql.join(Object.values(values))}) returning id`.execute(this.#bench.database);
    return Number(rows[0]?.id);
  }

  async #upload(path: string): Promise<number> {
    const multipart = new FormData();
    multipart.set('upload_path', path);
    multipart.set('fname', new Blob(['content']), 'x');
    return made(await this.#bench.request('POST', '/api/v1/userfiles/', { as: this.#people.owner, multipart }));
  }

  async #jobToken(feedId: number): Promise<Record<string, string>> {
    const token = randomBytes(20).toString('hex');
    await this.#row('api_token', {
      account_id: this.#people.owner.id,
      token_hash: hashToken(token),
      kind: 'job',
      feed_id: feedId,
    });
    return { authorization: `Token ${token}` };
  }

  async #session(): Promise<Record<string, string>> {
    const session = randomBytes(24).toString('base64url');
    await sql`insert into browser_session (id_hash, account_id, expires_at)
      values (${hashToken(session)}, ${this.#people.owner.id}, now() + interval '1 hour')`.execute(
      this.#bench.database,
    );
    return { cookie: `${SESSION_COOKIE}=${session}` };
  }

  /** A feed with an instance below its first one. */
  async #analysis(): Promise<{ feedId: number; childId: number; pluginId: number; folderId: number; output: string }> {
    const { owner } = this.#people;
    const fs = await this.#bench.plugin(`fs-${this.#word}`, 'fs');
    const ds = await this.#bench.plugin(`ds-${this.#word}`, 'ds', { parameters: PARAMETERS });
    const root = await this.#bench.run(fs, owner);
    made(root);
    const uploads = `home/${owner.username}/uploads`;
    const child = await this.#bench.run(ds, owner, {
      ...{ previous_id: root.json.id, s: 'text', i: 1, f: 0.5, b: true, p: uploads, u: uploads },
    });
    const feedId = Number(root.json.feed_id);
    const feed = await this.#bench.request('GET', `/api/v1/${feedId}/`, { as: owner });
    const folderId = Number(/(\d+)\/$/.exec(String(feed.json.folder))?.[1]);
    return { feedId, childId: made(child), pluginId: ds.id, folderId, output: String(child.json.output_path) };
  }

  async make(): Promise<World> {
    const { owner, member, stranger, staff } = this.#people;
    const { feedId, childId, pluginId, folderId, output } = await this.#analysis();
    const elsewhere = made(await this.#bench.run(await this.#bench.plugin(`other-${this.#word}`, 'fs'), owner));
    const { rows } = await sql<{
      feed_id: number;
    }>`select feed_id from plugin_instance where id = ${elsewhere}`.execute(this.#bench.database);
    await this.#row('feed_user_permission', { feed_id: feedId, account_id: member.id });
    await this.#post(`/api/v1/filebrowser/${folderId}/userpermissions/`, {
      username: member.username,
      permission: 'r',
    });
    const folder = output.slice(0, output.lastIndexOf('/feed_')).concat(`/feed_${feedId}`);
    const box = await this.#post('/api/v1/filebrowser/', { path: `${folder}/box` });
    const file = await this.#upload(`${output}/file.txt`);
    const link = await this.#row('link_file', {
      ...{ folder_id: box, name: 'to.chrislink', owner_id: owner.id, target_path: output },
    });
    const group = await this.#post('/api/v1/groups/', { name: this.#word }, this.#bench.admin);
    const parameters = await sql<{ id: number; type: string; parameter_id: number }>`
      select v.id, q.type, q.id as parameter_id from plugin_instance_parameter v
      join plugin_parameter q on q.id = v.plugin_parameter_id where v.plugin_instance_id = ${childId}`.execute(
      this.#bench.database,
    );
    const meta = await sql<{ meta_id: number }>`select meta_id from plugin where id = ${pluginId}`.execute(
      this.#bench.database,
    );
    const ids: Record<string, number> = {
      'users/': owner.id,
      'groups/': group,
      'groups/users/': await this.#post(
        `/api/v1/groups/${group}/users/`,
        { username: member.username },
        this.#bench.admin,
      ),
      'downloadtokens/': await this.#post('/api/v1/downloadtokens/', {}),
      'chrisinstance/': 1,
      note: Number((await this.#noteOf(feedId)) ?? 0),
      'files/': file,
      'userfiles/': file,
      'plugins/instances/': childId,
      'plugins/instances/splits/': await this.#row('plugin_instance_split', {
        ...{ plugin_instance_id: childId, created_plugin_instance_ids: [childId] },
      }),
      'computeresources/': await this.#row('compute_resource', {
        ...{ name: `resource-${this.#word}`, compute_url: 'http://127.0.0.1:9/api/v1/' },
      }),
      'plugins/metas/': Number(meta.rows[0]?.meta_id),
      'plugins/parameters/': Number(parameters.rows[0]?.parameter_id),
      'plugins/': pluginId,
      'admin:': pluginId,
      'filebrowser/': box,
      'filebrowser/files/': file,
      'filebrowser/linkfiles/': link,
      '': feedId,
    };
    for (const [base, id] of [
      ['filebrowser/', box],
      ['filebrowser/files/', file],
      ['filebrowser/linkfiles/', link],
    ] as const) {
      for (const [kind, json] of [
        ['grouppermissions/', { grp_name: this.#word, permission: 'r' }],
        ['userpermissions/', { username: member.username, permission: 'r' }],
      ] as const)
        ids[base + kind] = await this.#permission(`/api/v1/${base}${id}/${kind}`, json);
    }
    for (const { type, id } of parameters.rows) ids[`plugins/${type}-parameter/`] = Number(id);
    const bodies: Readonly<Record<string, Body>> = {
      'plugins/{id}/instances/': json({
        ...{ previous_id: childId, s: 'text', i: 1, f: 0.5, b: true, p: output, u: output },
      }),
      'groups/': json({ name: `new-${this.#word}` }),
      'groups/{id}/users/': json({ username: stranger.username }),
      'filebrowser/': json({ path: `${folder}/box/new` }),
      '/api/v1/auth/login/': LOG_IN_FORM,
      '/svc-admin/login/': LOG_IN_FORM,
      '/chris-admin/login/': LOG_IN_FORM,
    };
    const bodyFor = (path: string): Body =>
      bodies[path] ??
      json(
        /grouppermissions\/$/.test(path)
          ? { grp_name: 'pacs_users' }
          : /userpermissions\/$/.test(path)
            ? { username: stranger.username }
            : {},
      );
    return {
      bodyFor,
      callers: {
        anonymous: {},
        stranger: basic(stranger),
        member: basic(member),
        owner: basic(owner),
        staff: basic(staff),
        administrator: basic(this.#bench.admin),
        'job elsewhere': await this.#jobToken(Number(rows[0]?.feed_id)),
        'job here': await this.#jobToken(feedId),
        'session without proof': await this.#session(),
      },
      idFor: (path) => {
        const start = path.slice(0, Math.max(0, path.indexOf('{')));
        const id = ids[start] ?? ids[start.replace('admin:', '')];
        if (id === undefined || Number.isNaN(id)) throw new Error(`nothing was made for the path ${path}`);
        return id;
      },
    };
  }

  async #noteOf(feedId: number): Promise<number | undefined> {
    const { rows } = await sql<{ id: number }>`select id from note where feed_id = ${feedId}`.execute(
      this.#bench.database,
    );
    return rows[0]?.id;
  }

  /** What the object inherits, or a new one. */
  async #permission(list: string, json: object): Promise<number> {
    const inherited = await this.#bench.request('GET', list, { as: this.#people.owner });
    return Number(inherited.json.results?.[0]?.id ?? (await this.#post(list, json)));
  }
}

export function makeWorld(bench: Bench, people: People): Promise<World> {
  return new Maker(bench, people).make();
}
