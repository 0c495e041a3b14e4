/** The engines of this process, by instance and by compute resource. */
import type { Engine } from '../compute/engine.ts';
import { ServiceRefused } from '../compute/errors.ts';
import { EngineCache, engineKind } from '../compute/registry.ts';
import type { Instance } from '../instances/instance.ts';
import type { Services } from '../services.ts';

export class Engines {
  readonly #services: Services;
  readonly #cache: EngineCache;

  constructor(services: Services) {
    this.#services = services;
    this.#cache = new EngineCache(services);
  }

  /** The engine that an instance runs on. @throws {ServiceRefused} when its compute resource has been removed or is of no use */
  async of(instance: Instance): Promise<Engine> {
    const engine = instance.resource === null ? null : await this.byResource(instance.resource.id);
    if (engine === null) throw new ServiceRefused('the compute resource has been removed');
    return engine;
  }

  /** null when there is no such compute resource (any more). @throws {ServiceRefused} when its address is of no use */
  async byResource(id: number): Promise<Engine | null> {
    const resource = await this.#services.database
      .selectFrom('compute_resource')
      .selectAll()
      .where('id', '=', id)
      .executeTakeFirst();
    return resource === undefined ? null : this.#cache.get(resource);
  }

  /** Whether the server itself does the work, so that there is nothing to prepare. */
  isBuiltin({ resource }: Instance): boolean {
    return resource !== null && engineKind(resource.url) === 'builtin';
  }

  close(): Promise<void> {
    return this.#cache.close();
  }
}
