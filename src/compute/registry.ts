/** Picks the engine of a compute resource by the scheme of its `compute_url`. A new engine is added here. */
import { createHash } from 'node:crypto';
import type { Selectable } from 'kysely';
import type { ComputeResource } from '../database/generated.ts';
import type { Services } from '../services.ts';
import { BuiltinEngine } from './builtin.ts';
import { parseEngineAddress } from './container-client.ts';
import { ContainerEngine } from './containers.ts';
import type { Engine } from './engine.ts';
import { ServiceRefused } from './errors.ts';
import { PfconEngine } from './pfcon.ts';
import { ProcessEngine } from './process.ts';
import { programDirectory } from './program-file.ts';

type Resource = Selectable<ComputeResource>;

export type EngineKind = 'builtin' | 'process' | 'containers' | 'pfcon';

/** null when no engine has such an address. */
export function engineKind(computeUrl: string): EngineKind | null {
  if (computeUrl === 'builtin:') return 'builtin';
  if (programDirectory(computeUrl) !== null) return 'process';
  if (/^docker:(\/\/)?$/.test(computeUrl) || parseEngineAddress(computeUrl) !== null) return 'containers';
  const url = URL.parse(computeUrl);
  return url !== null && /^https?:$/.test(url.protocol) && url.hostname !== '' ? 'pfcon' : null;
}

/** Whether the jobs of a compute resource take the processors of one machine; others queue jobs themselves. */
export function isLimited(computeUrl: string): boolean {
  const kind = engineKind(computeUrl);
  return kind === 'process' || kind === 'containers';
}

/** What is wrong with a `compute_url`, or null. */
export function computeUrlProblem(computeUrl: string): string | null {
  return engineKind(computeUrl) === null
    ? 'Enter the address of a compute service such as https://host:30005/api/v1/, or "builtin:", "process:/absolute/folder", "docker:", "unix:///path/to/socket" or "tcp://host:port".'
    : null;
}

/**
 * Makes the engine of a compute resource; its owner closes it.
 * @throws {ServiceRefused} when its address is of no use
 */
export function engineFor(resource: Resource, services: Services): Engine {
  const { storage, config, log } = services;
  const dataDirectory = config.data;
  const computeUrl = resource.compute_url;
  switch (engineKind(computeUrl)) {
    case 'builtin':
      return new BuiltinEngine();
    case 'process':
      return new ProcessEngine({
        enabled: config.processEngine,
        programs: programDirectory(computeUrl) ?? '',
        storage,
        dataDirectory,
        log,
      });
    case 'containers':
      return new ContainerEngine({
        computeUrl,
        serverId: services.secrets.derive('server id').toString('hex', 0, 16),
        user: config.containerUser ?? '',
        storage,
        dataDirectory,
        log,
      });
    case 'pfcon':
      return pfconEngine(resource, services);
    case null:
      throw new ServiceRefused(`no engine is known for "${computeUrl}"`);
  }
}

/** The engines of a process: one for each compute resource, until its settings change. */
export class EngineCache {
  readonly #services: Services;
  readonly #known = new Map<string, { readonly settings: string; readonly engine: Engine }>();

  constructor(services: Services) {
    this.#services = services;
  }

  /** An engine that is replaced is closed, and tells its watchers nothing more. @throws {ServiceRefused} */
  async get(resource: Resource): Promise<Engine> {
    const id = String(resource.id);
    const settings = settingsOf(resource);
    const known = this.#known.get(id);
    if (known?.settings === settings) return known.engine;
    const engine = engineFor(resource, this.#services);
    this.#known.set(id, { settings, engine });
    await known?.engine.close();
    return engine;
  }

  async close(): Promise<void> {
    await Promise.all([...this.#known.values()].map(({ engine }) => engine.close()));
    this.#known.clear();
  }
}

/** What an engine is made from. The token is left out: engines renew it themselves. */
function settingsOf(resource: Resource): string {
  return JSON.stringify([
    resource.compute_url,
    resource.compute_auth_url,
    resource.compute_user,
    resource.compute_password_encrypted?.toString('hex'),
    resource.compute_innetwork,
    resource.compute_requires_copy_job,
    resource.compute_requires_upload_job,
  ]);
}

/** Tokens that services gave to this process, also before the resource was stored. */
const givenTokens = new Map<string, string>();

function pfconEngine(resource: Resource, services: Services): Engine {
  const { secrets, database, storage, config } = services;
  const decrypt = (stored: Buffer | null) => (stored === null ? '' : secrets.decrypt(stored));
  const password = decrypt(resource.compute_password_encrypted);
  const { compute_url: computeUrl, compute_auth_url: authUrl, compute_user: username } = resource;
  const account = createHash('sha256')
    .update(JSON.stringify([computeUrl, authUrl, username, password]))
    .digest('hex');
  return new PfconEngine({
    computeUrl,
    authUrl,
    username,
    password,
    token: decrypt(resource.compute_auth_token_encrypted) || (givenTokens.get(account) ?? ''),
    onToken: async (token) => {
      givenTokens.set(account, token);
      await database
        .updateTable('compute_resource')
        .set({ compute_auth_token_encrypted: secrets.encrypt(token) })
        .where('id', '=', resource.id)
        .execute();
    },
    described: {
      inNetwork: resource.compute_innetwork,
      requiresCopyJob: resource.compute_requires_copy_job,
      requiresUploadJob: resource.compute_requires_upload_job,
    },
    storage,
    dataDirectory: config.data,
  });
}
