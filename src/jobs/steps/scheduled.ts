/** `scheduled` → `started`: the program is submitted, once the instance has a slot where there are few. */
import { admit, isLimited } from '../admission.ts';
import type { JobContext, Outcome } from '../context.ts';
import type { Instance } from '../instance.ts';
import { submit } from '../phase.ts';

export async function startProgram(context: JobContext, instance: Instance): Promise<Outcome> {
  const { resource } = instance;
  if (resource !== null && isLimited(resource.url) && !instance.admitted) {
    const { database, config } = context.services;
    if (!(await admit(database, resource.id, config.jobSlots, instance.id))) return 'rest';
  }
  return submit(context, instance, 'plugin', 'started', { pushed: true });
}
