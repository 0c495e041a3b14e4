/**
 * The background worker of a process: runs the tasks of the queue, and looks from time to time for what nobody works on.
 * Stopping lets running steps end; whatever is cut off is done again by the next process.
 */
import { EventEmitter } from 'node:events';
import { setTimeout as setTimeoutPromise } from 'node:timers/promises';
import { type JobHelpers, Logger, type LogLevel, run, type TaskList, type WorkerEvents } from 'graphile-worker';
import { enqueue, idOf, type TaskName } from '../database/queue.ts';
import { removeFromStorage } from '../files/tree-removal.ts';
import type { Log } from '../log.ts';
import type { Services } from '../services.ts';
import { admit } from './admission.ts';
import { advance, giveUp } from './advance.ts';
import { cleanUp } from './cleanup.ts';
import type { JobContext } from './context.ts';
import { deleteFeed, deleteFolder, deleteInstance, deletionFailed } from './deletions.ts';
import { describeComputeResource } from './describe.ts';
import { Engines } from './engines.ts';
import { reconcile } from './reconcile.ts';
import { Turns } from './turns.ts';
import { Watchers } from './watchers.ts';

const RECONCILE_MILLISECONDS = 30_000;

/** Jobs that are due now start by notification; this is for those that were enqueued for later. */
const POLL_MILLISECONDS = 500;

/** Before a queue that ended by itself is started again. */
const RESTART_MILLISECONDS = 1000;

/** Before an instance that another process is at is looked at again. */
const OTHER_PROCESS_PAUSE_SECONDS = 1;

export interface Worker {
  /** For `/readyz`: what keeps it from working, or null. */
  problem(): Promise<string | null>;
  /** Takes no more jobs and waits for those that run. */
  stop(): Promise<void>;
}

interface Task {
  run(context: JobContext, id: number): Promise<unknown>;
  /** What remains to be said when the last try has failed. */
  failed?(context: JobContext, id: number, reason: string): Promise<void>;
}

const TASKS: Readonly<Record<TaskName, Task>> = {
  advance: { run: advance, failed: giveUp },
  admit: {
    run: ({ services }, id) => admit(services.database, id, services.config.jobSlots),
  },
  cleanUp: { run: cleanUp },
  describeComputeResource: { run: describeComputeResource },
  deleteInstance: {
    run: deleteInstance,
    failed: (context, id, reason) => deletionFailed(context, 'plugin_instance', id, reason),
  },
  deleteFeed: { run: deleteFeed, failed: (context, id, reason) => deletionFailed(context, 'feed', id, reason) },
  deleteFolder: {
    run: deleteFolder,
    failed: (context, id, reason) => deletionFailed(context, 'folder', id, reason),
  },
  removeFromStorage: { run: ({ services }) => removeFromStorage(services) },
};

export async function startWorker(services: Services): Promise<Worker> {
  const { database, log, pool } = services;
  const watchers = new Watchers((instanceId) => {
    enqueue(database, 'advance', { instanceId }).catch((error: unknown) =>
      log.error(
        { err: error, instance: instanceId },
        'a plugin instance could not be enqueued; it will be found later',
      ),
    );
  });
  const context: JobContext = { services, engines: new Engines(services), watchers };
  const turns = new Turns(pool);
  const stopping = new AbortController();
  const state: QueueState = { isRunning: false };
  await reconcile(context);
  const running = keepRunning(context, turns, state, stopping.signal);
  const reconciling = keepReconciling(context, stopping.signal);
  return {
    problem: async () =>
      state.isRunning ? null : 'The job queue is not running. The log of the server has the reason.',
    async stop() {
      stopping.abort();
      await Promise.all([running, reconciling]);
      watchers.close();
      await context.engines.close();
      await turns.close();
    },
  };
}

interface QueueState {
  isRunning: boolean;
}

/** Runs the queue until it is stopped; begins again when it ends by itself, as after trouble with the database. */
async function keepRunning(context: JobContext, turns: Turns, state: QueueState, stopping: AbortSignal): Promise<void> {
  while (!stopping.aborted) {
    try {
      await runQueue(context, turns, state, stopping);
    } catch (error) {
      context.services.log.error({ err: error }, 'the job queue stopped; it is started again');
    }
    await sleep(RESTART_MILLISECONDS, stopping);
  }
}

async function runQueue(context: JobContext, turns: Turns, state: QueueState, stopping: AbortSignal): Promise<void> {
  const { config, log, pool, process } = context.services;
  const events: WorkerEvents = new EventEmitter();
  const recorded = new Promise<void>((resolve, reject) => {
    events.once('pool:create', ({ workerPool }) => process.recordWorkers([workerPool.id]).then(resolve, reject));
  });
  const runner = await run({
    pgPool: pool,
    events,
    concurrency: config.workerConcurrency,
    pollInterval: POLL_MILLISECONDS,
    noHandleSignals: true,
    logger: loggerOf(log),
    taskList: taskListOf(context, turns),
    parsedCronItems: [],
  });
  const stop = (): void => {
    const cutOff = setTimeout(() => runner.kill('the server stops'), config.shutdownSeconds * 1000);
    runner
      .stop()
      .finally(() => clearTimeout(cutOff))
      .catch((error: unknown) => log.error({ err: error }, 'the job queue did not stop cleanly'));
  };
  stopping.addEventListener('abort', stop, { once: true });
  try {
    await recorded;
    state.isRunning = true;
    if (stopping.aborted) stop();
    await runner.promise;
  } finally {
    state.isRunning = false;
    stopping.removeEventListener('abort', stop);
  }
}

async function keepReconciling(context: JobContext, stopping: AbortSignal): Promise<void> {
  for (;;) {
    await sleep(RECONCILE_MILLISECONDS, stopping);
    if (stopping.aborted) return;
    try {
      await reconcile(context);
    } catch (error) {
      context.services.log.error({ err: error }, 'looking for work that nobody does failed; it is tried again later');
    }
  }
}

function taskListOf(context: JobContext, turns: Turns): TaskList {
  const names = Object.keys(TASKS).filter((name): name is TaskName => name in TASKS);
  return Object.fromEntries(
    names.map((name) => [
      name,
      async (payload: unknown, { job }: JobHelpers): Promise<void> => {
        const id = idOf(name, payload);
        try {
          if (name === 'advance') await advanceInTurn(context, turns, id);
          else await TASKS[name].run(context, id);
        } catch (error) {
          if (job.attempts >= job.max_attempts) await TASKS[name].failed?.(context, id, messageOf(error));
          throw error;
        }
      },
    ]),
  );
}

async function advanceInTurn(context: JobContext, turns: Turns, instanceId: number): Promise<void> {
  const turn = await turns.take(instanceId, () => advance(context, instanceId));
  if (turn !== 'held by another process') return;
  await enqueue(context.services.database, 'advance', { instanceId }, { delaySeconds: OTHER_PROCESS_PAUSE_SECONDS });
}

/** Waits, but not when it is to stop. */
async function sleep(milliseconds: number, stopping: AbortSignal): Promise<void> {
  await setTimeoutPromise(milliseconds, undefined, { signal: stopping }).catch((error: unknown) => {
    if (!stopping.aborted) throw error;
  });
}

function loggerOf(log: Log): Logger {
  const levels: Record<LogLevel, 'error' | 'warn' | 'debug' | 'trace'> = {
    error: 'error',
    warning: 'warn',
    info: 'debug',
    debug: 'trace',
  };
  return new Logger((scope) => (level, message, meta) => log[levels[level]]({ ...scope, err: meta?.error }, message));
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
