/** `copying` → `scheduled`: inputs are staged by a copy job of the compute resource. */

import type { Instance } from '../../instances/instance.ts';
import { NOW } from '../../instances/transitions.ts';
import type { JobContext, Outcome } from '../context.ts';
import { fail, move, observe, submit } from '../phase.ts';

export async function copyInputs(context: JobContext, instance: Instance): Promise<Outcome> {
  if (instance.phaseSeconds === null) return submit(context, instance, 'copy', 'copying');
  return observe(context, instance, 'copy', async (state) => {
    if (state.status !== 'finishedSuccessfully') {
      return fail(context, instance, state.errorCode ?? 'CODE18', `the copy job failed: ${state.message}`);
    }
    return move(context, instance, 'scheduled', {
      pushed: true,
      start_date: NOW,
      end_date: NOW,
      phase_started_at: null,
      resubmissions: 0,
      watched_by: null,
    });
  });
}
