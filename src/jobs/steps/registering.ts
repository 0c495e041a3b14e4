/** `registeringFiles` → the end: outputs are brought to storage and registered. */
import type { CollectedFiles } from '../../compute/engine.ts';
import { CollectionFailed, ComputeError, ServiceUnreachable, SubmissionFailed } from '../../compute/errors.ts';
import type { Instance } from '../../instances/instance.ts';
import { registerOutputs } from '../../instances/registration.ts';
import { RegistrationFailed } from '../../instances/registration-error.ts';
import { StorageFull } from '../../storage/errors.ts';
import type { JobContext, Outcome } from '../context.ts';
import { buildJob } from '../job.ts';
import { fail, tryLater } from '../phase.ts';

/** Outputs could not even be fetched. */
const NOT_FETCHED = 'CODE03';

interface Failure {
  readonly code: string;
  readonly reason: string;
}

export async function registerFiles(context: JobContext, instance: Instance): Promise<Outcome> {
  if (instance.output === null) return fail(context, instance, 'CODE01', 'the output folder has been deleted');
  const { path } = instance.output;
  let collected: CollectedFiles;
  try {
    const engine = await context.engines.of(instance);
    collected = await engine.collect(await buildJob(context, instance, path, { withToken: false }));
  } catch (error) {
    if (error instanceof ServiceUnreachable && (await tryLater(context, instance, error.message))) return 'rest';
    return endBadly(context, instance, path, failureOf(error));
  }
  try {
    await registerOutputs(context.services, instance, path, collected, {
      status: succeeded(instance) ? 'finishedSuccessfully' : 'finishedWithError',
      pulled: true,
      code: '',
    });
    return 'go on';
  } catch (error) {
    return endBadly(context, instance, path, failureOf(error));
  }
}

function succeeded({ jobStatus }: Instance): boolean {
  return jobStatus === 'finishedSuccessfully';
}

/** An instance whose program succeeded is cancelled; one whose program failed anyway keeps that as its end. */
async function endBadly(context: JobContext, instance: Instance, path: string, failure: Failure): Promise<Outcome> {
  const pulled = failure.code !== NOT_FETCHED;
  if (succeeded(instance)) return fail(context, instance, failure.code, failure.reason, { pulled });
  context.services.log.warn({ instance: instance.id, ...failure }, 'outputs of a failed program were not registered');
  const end = { status: 'finishedWithError', pulled, code: failure.code } as const;
  await registerOutputs(context.services, instance, path, [], end);
  return 'go on';
}

/** @throws the error itself when it is none that the instance is to blame for */
function failureOf(error: unknown): Failure {
  const hasCode =
    error instanceof CollectionFailed || error instanceof RegistrationFailed || error instanceof SubmissionFailed;
  if (hasCode) return { code: error.code, reason: error.message };
  if (error instanceof ComputeError) return { code: NOT_FETCHED, reason: error.message };
  if (error instanceof StorageFull) return { code: 'CODE07', reason: error.message };
  throw error;
}
