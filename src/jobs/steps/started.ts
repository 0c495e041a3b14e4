/** `started` → `uploading` or `registeringFiles`: the program runs. */
import { freeSlots } from '../../instances/ending.ts';
import type { Instance } from '../../instances/instance.ts';
import { moveTo, NOW } from '../../instances/transitions.ts';
import { answerColumns } from '../answers.ts';
import type { JobContext, Outcome } from '../context.ts';
import { fail, observe } from '../phase.ts';

export async function awaitProgram(context: JobContext, instance: Instance): Promise<Outcome> {
  return observe(context, instance, 'plugin', async (state) => {
    const answer = answerColumns(instance.jobId, state);
    if (state.errorCode !== undefined) {
      return fail(context, { ...instance, raw: answer.raw }, state.errorCode, state.message);
    }
    const uploads = instance.resource?.requiresUploadJob ?? false;
    const next = uploads ? 'uploading' : 'registeringFiles';
    const changes = {
      ...answer,
      ...(uploads ? {} : { end_date: NOW }),
      admitted: false,
      phase_started_at: null,
      resubmissions: 0,
      watched_by: null,
    };
    context.watchers.forget(instance.id);
    await context.services.database.transaction().execute(async (transaction) => {
      if (await moveTo(transaction, instance.id, instance.status, next, changes)) {
        await freeSlots(transaction, [instance.id]);
      }
    });
    return 'go on';
  });
}
