/** `uploading` → `registeringFiles`: outputs are brought to storage by an upload job of the compute resource. */

import type { Instance } from '../../instances/instance.ts';
import { NOW } from '../../instances/transitions.ts';
import type { JobContext, Outcome } from '../context.ts';
import { fail, move, observe, submit } from '../phase.ts';

export async function uploadOutputs(context: JobContext, instance: Instance): Promise<Outcome> {
  if (instance.phaseSeconds === null) return submit(context, instance, 'upload', 'uploading');
  return observe(context, instance, 'upload', async (state) => {
    if (state.status !== 'finishedSuccessfully') {
      return fail(context, instance, state.errorCode ?? 'CODE18', `the upload job failed: ${state.message}`);
    }
    return move(context, instance, 'registeringFiles', {
      end_date: NOW,
      phase_started_at: null,
      resubmissions: 0,
      watched_by: null,
    });
  });
}
