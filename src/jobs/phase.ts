/** What the steps with an engine have in common: submitting a phase with retries, and looking at it until it has ended. */
import { type Engine, hasEnded, type Job, type JobState, type Phase } from '../compute/engine.ts';
import { ComputeError, ServiceUnreachable, SubmissionFailed } from '../compute/errors.ts';
import { enqueue } from '../database/queue.ts';
import type { Instance } from '../instances/instance.ts';
import type { Status } from '../instances/status.ts';
import { type Changes, moveTo, NOW } from '../instances/transitions.ts';
import { answerColumns, withFailure } from './answers.ts';
import type { JobContext, Outcome } from './context.ts';
import { buildJob } from './job.ts';

/** Pauses before a failed submission is tried again: about half a minute in all. */
const RETRY_PAUSES_SECONDS: readonly number[] = [1, 2, 4, 8, 15];

/** Times that a copy or upload whose state is undefined is submitted again; a job that vanished is once. */
const RESUBMISSIONS_WHEN_UNDEFINED = 3;
const RESUBMISSIONS_WHEN_VANISHED = 1;

/** Status requests without an answer in a row after which a copy or upload is submitted again: about half a minute. */
const SILENCES_BEFORE_RESUBMISSION = 5;

/** Ends an instance because the machinery failed. The reason is kept with its log. */
export async function fail(
  context: JobContext,
  instance: Instance,
  code: string,
  reason: string,
  changes: Changes = {},
): Promise<Outcome> {
  context.services.log.warn({ instance: instance.id, code, reason }, 'a plugin instance failed');
  const answer = withFailure(instance.jobId, instance.raw, code, reason);
  await move(context, instance, 'cancelled', { ...changes, ...answer, error_code: code });
  return 'rest';
}

/** A guarded change of status in a transaction of its own; another instance of the step may have been faster. */
export async function move(context: JobContext, instance: Instance, to: Status, changes: Changes): Promise<Outcome> {
  const moved = await context.services.database
    .transaction()
    .execute((transaction) => moveTo(transaction, instance.id, instance.status, to, changes));
  if (moved) context.watchers.forget(instance.id);
  return 'go on';
}

/**
 * Submits a phase, and moves the instance on when it is accepted.
 * @param to the status after it, which may be the present one
 */
export async function submit(
  context: JobContext,
  instance: Instance,
  phase: Phase,
  to: Status,
  changes: Changes = {},
): Promise<Outcome> {
  if (instance.output === null) return fail(context, instance, 'CODE01', 'the output folder has been deleted');
  let state: JobState;
  try {
    const engine = await context.engines.of(instance);
    const job = await buildJob(context, instance, instance.output.path, { withToken: phase === 'plugin' });
    if (!context.engines.isBuiltin(instance)) await context.services.storage.makeFolder(instance.output.path);
    state = await engine.submit(phase, job);
  } catch (error) {
    if (error instanceof SubmissionFailed)
      return retryOrFail(context, instance, error.code, error.message, error.retry);
    if (error instanceof ComputeError) {
      return retryOrFail(context, instance, 'CODE01', error.message, error instanceof ServiceUnreachable);
    }
    throw error;
  }
  return move(context, instance, to, {
    ...changes,
    ...(phase === 'upload' ? {} : answerColumns(instance.jobId, state)),
    phase_started_at: NOW,
    submission_failures: 0,
    ...(phase === 'upload' ? {} : { start_date: NOW, end_date: NOW }),
  });
}

async function retryOrFail(
  context: JobContext,
  instance: Instance,
  code: string,
  reason: string,
  retry: boolean,
): Promise<Outcome> {
  if (retry && (await tryLater(context, instance, reason))) return 'rest';
  return fail(context, instance, code, reason);
}

/** Tries the present step again after a pause. False when it has been tried as often as `RETRY_PAUSES_SECONDS` is long. */
export async function tryLater(context: JobContext, instance: Instance, reason: string): Promise<boolean> {
  const { database, log } = context.services;
  const pause = RETRY_PAUSES_SECONDS[instance.submissionFailures];
  if (pause === undefined) return false;
  log.info({ instance: instance.id, reason, pause }, 'a step of a plugin instance is tried again');
  await database.transaction().execute(async (transaction) => {
    const changes = { submission_failures: instance.submissionFailures + 1 };
    if (!(await moveTo(transaction, instance.id, instance.status, instance.status, changes))) return;
    await enqueue(transaction, 'advance', { instanceId: instance.id }, { delaySeconds: pause });
  });
  return true;
}

/**
 * Looks at a submitted phase. While it runs, its end is waited for; what ends it badly is dealt with here.
 * @param ended what to do when the program has ended, well or not
 */
export async function observe(
  context: JobContext,
  instance: Instance,
  phase: Phase,
  ended: (state: JobState) => Promise<Outcome>,
): Promise<Outcome> {
  if (instance.output === null) return fail(context, instance, 'CODE01', 'the output folder has been deleted');
  const job = await buildJob(context, instance, instance.output.path, { withToken: false });
  let engine: Engine;
  let state: JobState | null;
  try {
    engine = await context.engines.of(instance);
    state = await engine.inspect(phase, job);
  } catch (error) {
    if (!(error instanceof ComputeError)) throw error;
    context.services.log.info({ instance: instance.id, reason: error.message }, 'a compute resource did not answer');
    if (isOverdue(instance)) return timeOver(context, instance);
    const isSilent = context.watchers.silences(instance.id) >= SILENCES_BEFORE_RESUBMISSION;
    if (isSilent && phase !== 'plugin') return submitToSilent(context, instance, phase);
    await watched(context, instance, {});
    context.watchers.askAgain(instance.id);
    return 'rest';
  }
  if (state === null)
    return resubmit(
      context,
      instance,
      phase,
      'CODE18',
      RESUBMISSIONS_WHEN_VANISHED,
      'its job has vanished from the compute resource',
    );
  if (!hasEnded(state.status)) {
    if (isOverdue(instance)) return timeOver(context, instance);
    return wait(context, instance, phase, engine, job, state);
  }
  if (state.status !== 'undefined') return ended(state);
  const reason = state.message === '' ? 'the compute resource cannot tell what became of the job' : state.message;
  if (phase !== 'plugin') return resubmit(context, instance, phase, 'CODE18', RESUBMISSIONS_WHEN_UNDEFINED, reason);
  const answer = answerColumns(instance.jobId, state);
  return fail(context, { ...instance, raw: answer.raw }, state.errorCode ?? 'CODE10', reason);
}

/**
 * A service that does not tell how a job is may still take it, which is harmless: two submissions are one job. If it refuses,
 * the job counts as not submitted; if it does not answer at all, it is asked again.
 */
async function submitToSilent(context: JobContext, instance: Instance, phase: Phase): Promise<Outcome> {
  if (instance.output === null) return 'go on';
  try {
    const engine = await context.engines.of(instance);
    await engine.submit(phase, await buildJob(context, instance, instance.output.path, { withToken: false }));
  } catch (error) {
    if (error instanceof SubmissionFailed) return move(context, instance, instance.status, { phase_started_at: null });
    if (!(error instanceof ComputeError)) throw error;
  }
  await watched(context, instance, {});
  context.watchers.askAgain(instance.id);
  return 'rest';
}

function isOverdue({ phaseSeconds, maxExecutionSeconds }: Instance): boolean {
  return maxExecutionSeconds !== null && phaseSeconds !== null && phaseSeconds > maxExecutionSeconds;
}

function timeOver(context: JobContext, instance: Instance): Promise<Outcome> {
  return fail(
    context,
    instance,
    'CODE13',
    `the time limit of ${instance.maxExecutionSeconds} s of the compute resource is over`,
  );
}

async function wait(
  context: JobContext,
  instance: Instance,
  phase: Phase,
  engine: Engine,
  job: Job,
  state: JobState,
): Promise<Outcome> {
  const answer = phase === 'upload' ? {} : answerColumns(instance.jobId, state);
  if (!(await watched(context, instance, answer))) return 'go on';
  context.watchers.watch(instance.id, engine, phase, job, instance.phaseSeconds ?? 0);
  return 'rest';
}

/** Says in the row that this process watches the instance. False when it has left its status. */
function watched(context: JobContext, instance: Instance, changes: Changes): Promise<boolean> {
  const { database, process } = context.services;
  return database
    .transaction()
    .execute((transaction) =>
      moveTo(transaction, instance.id, instance.status, instance.status, { ...changes, watched_by: process.id }),
    );
}

async function resubmit(
  context: JobContext,
  instance: Instance,
  phase: Phase,
  code: string,
  times: number,
  reason: string,
): Promise<Outcome> {
  if (instance.resubmissions >= times) return fail(context, instance, code, reason);
  context.services.log.warn({ instance: instance.id, phase, reason }, 'a job is submitted again');
  return submit(context, instance, phase, instance.status, { resubmissions: instance.resubmissions + 1 });
}
