/** The real HTTP server on a real database, without a worker: instances stay as their creation left them. */
import { mkdtemp, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { sql } from 'kysely';
import { prepareAdministrator } from '../../src/commands/first-administrator.ts';
import { loadConfig } from '../../src/config.ts';
import type { Database } from '../../src/database/database.ts';
import { parseDescriptor } from '../../src/plugins/descriptor.ts';
import { insertPlugin } from '../../src/plugins/registration.ts';
import { buildServer } from '../../src/server.ts';
import { openServices, type Services } from '../../src/services.ts';
import { type Answer, clientOf, type Request, signUp } from '../helpers/client.ts';
import { silentLog, temporaryDatabase } from '../helpers/postgres.ts';
import type { Credentials } from '../helpers/server.ts';

export interface Plugin {
  readonly id: number;
  readonly name: string;
  /** Address of its instances. */
  readonly instances: string;
}

export interface Bench {
  readonly url: string;
  readonly services: Services;
  readonly request: Request;
  readonly database: Database;
  readonly admin: Credentials;
  /** Where the server keeps the bytes of files. */
  readonly storage: string;
  /** Names of the two compute resources; plugins are registered on the first, unless told otherwise. */
  readonly resources: readonly [string, string];
  user(word: string): Promise<Credentials & { readonly id: number }>;
  plugin(
    name: string,
    type: 'fs' | 'ds' | 'ts',
    more?: Readonly<Record<string, unknown>>,
    onBoth?: boolean,
  ): Promise<Plugin>;
  /** POST of a new instance. */
  run(plugin: Plugin, as: Credentials, json?: Readonly<Record<string, unknown>>): Promise<Answer>;
  setStatus(instanceId: unknown, status: string): Promise<void>;
  close(): Promise<void>;
}

const PASSWORD = 'administrator-1';

/** @param parameters in the words of descriptors */
export function parameter(name: string, type: string, more: Readonly<Record<string, unknown>> = {}): object {
  return { name, type, optional: false, flag: `--${name}`, help: name, ...more };
}

/** @param settings further variables of the configuration */
export async function openBench(settings: Readonly<Record<string, string>> = {}): Promise<Bench> {
  const { database, connection, close } = await temporaryDatabase();
  const data = await mkdtemp('/tmp/hypercube-bench-');
  const config = loadConfig({ HYPERCUBE_DATA: data, HYPERCUBE_ADMIN_PASSWORD: PASSWORD, ...settings });
  const services = await openServices(config, connection, silentLog);
  const { username } = await prepareAdministrator(services);
  const app = await buildServer(services);
  const url = await app.listen({ host: '127.0.0.1', port: 0 });
  const request = clientOf({ url });
  const resources = ['here', 'there'] as const;
  const rows = resources.map((name) => ({ name, compute_url: 'http://127.0.0.1:9/api/v1/' }));
  const ids = await database.insertInto('compute_resource').values(rows).returning('id').execute();

  const plugin: Bench['plugin'] = async (name, type, more = {}, onBoth = false) => {
    const program = { dock_image: `example/${name}`, execshell: 'sh', selfpath: '/bin', selfexec: name };
    const descriptor = parseDescriptor({ name, type, version: '1.0', parameters: [], ...program, ...more });
    const resourceIds = ids.slice(0, onBoth ? 2 : 1).map((row) => row.id);
    const id = await database
      .transaction()
      .execute((transaction) => insertPlugin(transaction, descriptor, resourceIds, null));
    return { id, name, instances: `/api/v1/plugins/${id}/instances/` };
  };

  return {
    url,
    services,
    request,
    database,
    admin: { username, password: PASSWORD },
    storage: join(data, 'storage'),
    resources,
    user: (word) => signUp(request, word),
    plugin,
    run: ({ instances }, as, json = {}) => request('POST', instances, { as, json }),
    setStatus: async (instanceId, status) => {
      await sql`update plugin_instance set status = ${status} where id = ${Number(instanceId)}`.execute(database);
    },
    close: async () => {
      await app.close();
      await services.close();
      await close();
      await rm(data, { recursive: true, force: true });
    },
  };
}
