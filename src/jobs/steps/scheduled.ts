/** `scheduled` → `started`: the program is submitted, once the instance has a slot where there are few. */

import { isLimited } from '../../compute/registry.ts';
import type { Instance } from '../../instances/instance.ts';
import { admit } from '../admission.ts';
import type { JobContext, Outcome } from '../context.ts';
import { submit } from '../phase.ts';

export async function startProgram(context: JobContext, instance: Instance): Promise<Outcome> {
  const { resource } = instance;
  if (resource !== null && isLimited(resource.url) && !instance.admitted) {
    const { database, config } = context.services;
    if (!(await admit(database, resource.id, config.jobSlots, instance.id))) return 'rest';
  }
  return submit(context, instance, 'plugin', 'started', { pushed: true });
}
