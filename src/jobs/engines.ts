/** The engines of this process: one for each compute resource, kept as long as the resource stays as it is. */
import type { Engine } from '../compute/engine.ts';
import { ComputeError } from '../compute/errors.ts';
import { engineFor } from '../compute/registry.ts';
import type { Services } from '../services.ts';
import type { Instance } from './instance.ts';

export class Engines {
  readonly #services: Services;
  readonly #known = new Map<number, { readonly url: string; readonly engine: Engine }>();

  constructor(services: Services) {
    this.#services = services;
  }

  /** The engine that an instance runs on. @throws {ComputeError} when its compute resource has been removed */
  async of(instance: Instance): Promise<Engine> {
    const engine = instance.resource === null ? null : await this.byResource(instance.resource.id);
    if (engine === null) throw new ComputeError('the compute resource has been removed');
    return engine;
  }

  /** null when there is no such compute resource (any more). */
  async byResource(id: number): Promise<Engine | null> {
    const resource = await this.#services.database
      .selectFrom('compute_resource')
      .selectAll()
      .where('id', '=', id)
      .executeTakeFirst();
    if (resource === undefined) return null;
    return engineFor(resource, this.#services);
  }

  /** Whether the server itself does the work, so that there is nothing to prepare. */
  isBuiltin({ resource }: Instance): boolean {
    return resource?.url.startsWith('builtin:') ?? false;
  }

  async close(): Promise<void> {
    await Promise.all([...this.#known.values()].map(({ engine }) => engine.close()));
  }
}
