/**
 * The task `advance`: takes a plugin instance as far on as it goes now.
 *
 * Each status has one step, which does its work, moves the instance on in one guarded update, and says whether the next step
 * can follow at once. Every step can be run twice: after a crash it finds what the first run left.
 */

import { type Instance, loadInstance } from '../instances/instance.ts';
import { isFinal, type Status } from '../instances/status.ts';
import type { JobContext, Outcome } from './context.ts';
import { fail } from './phase.ts';
import { copyInputs } from './steps/copying.ts';
import { registerFiles } from './steps/registering.ts';
import { startProgram } from './steps/scheduled.ts';
import { awaitProgram } from './steps/started.ts';
import { uploadOutputs } from './steps/uploading.ts';
import { leaveWaiting } from './steps/waiting.ts';

type Step = (context: JobContext, instance: Instance) => Promise<Outcome>;

/** The step of each status that is not the last. */
export const STEPS: Partial<Record<Status, Step>> = {
  created: leaveWaiting,
  waiting: leaveWaiting,
  copying: copyInputs,
  scheduled: startProgram,
  started: awaitProgram,
  uploading: uploadOutputs,
  registeringFiles: registerFiles,
};

export async function advance(context: JobContext, instanceId: number): Promise<void> {
  for (let outcome: Outcome = 'go on'; outcome === 'go on'; ) {
    const instance = await loadInstance(context.services.database, instanceId);
    const step = instance === null ? undefined : STEPS[instance.status];
    if (instance === null || step === undefined) return context.watchers.forget(instanceId);
    outcome = needsResource(instance)
      ? await fail(context, instance, 'CODE01', 'its compute resource has been removed')
      : await step(context, instance);
  }
}

/** Ends an instance whose step keeps throwing what it should not. */
export async function giveUp(context: JobContext, instanceId: number): Promise<void> {
  const instance = await loadInstance(context.services.database, instanceId);
  if (instance === null || isFinal(instance.status)) return;
  await fail(context, instance, 'CODE19', 'the server failed at this instance again and again; its log says more');
}

function needsResource({ resource, status }: Instance): boolean {
  return resource === null && status !== 'created' && status !== 'waiting';
}
