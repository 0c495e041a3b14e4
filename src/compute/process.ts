/**
 * Runs a plugin's program as a child process, for machines without containers. There is no isolation: the program has the
 * rights of the server's own user, so the operator has to turn this on.
 *
 * A supervisor (`supervisor.ts`) in a session of its own stands between the server and the program; both go on when the server
 * ends and are found again by the job folder:
 *
 *   incoming/   copies of the input       home/        working directory and HOME of the program
 *   supervisor  identity of that process  program, log, exit  see `supervisor.ts`
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { watch as watchFolder, writeFileSync } from 'node:fs';
import { mkdir, open, readFile, realpath, rename, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import type { Logger } from 'pino';
import type { Storage } from '../storage/storage.ts';
import { quoteCommand, replacePathValues } from './command-line.ts';
import type { CollectedFiles, Engine, EngineDescription, Job, JobState, Phase, Watch } from './engine.ts';
import { hasEnded, LOG_LIMIT_BYTES } from './engine.ts';
import { ComputeError, ServiceRefused, SubmissionFailed } from './errors.ts';
import { JobFolders } from './job-folder.ts';
import { collectOutput } from './output-folder.ts';
import { identify, isAlive, type ProcessIdentity, parseIdentity, signalSession } from './process-identity.ts';
import { findProgram } from './program-file.ts';
import { emptyOutputFolder, stageInputs } from './staging.ts';
import { type ExitRecord, parseExit, type SupervisorOrder } from './supervisor-files.ts';

const SUPERVISOR = fileURLToPath(new URL('./supervisor.ts', import.meta.url));

/** The end of a job is noticed by its files; this only finds supervisors that were killed. */
const SUPERVISOR_CHECK_MILLISECONDS = 5000;

export interface ProcessEngineOptions {
  readonly enabled: boolean;
  /** Absolute path of the folder with a folder for each plugin. */
  readonly programs: string;
  readonly storage: Storage;
  readonly dataDirectory: string;
  readonly log: Logger;
  /** Between asking a program to end and ending it. */
  readonly graceSeconds?: number;
}

export class ProcessEngine implements Engine {
  readonly #options: ProcessEngineOptions;
  readonly #folders: JobFolders;
  readonly #graceSeconds: number;
  readonly #watches = new Set<Watch>();

  constructor(options: ProcessEngineOptions) {
    this.#options = options;
    this.#folders = new JobFolders(options.dataDirectory);
    this.#graceSeconds = options.graceSeconds ?? 2;
  }

  async describe(): Promise<EngineDescription> {
    if (!this.#options.enabled) throw new ServiceRefused(NOT_ENABLED);
    const status = await stat(this.#options.programs).catch(() => null);
    if (!status?.isDirectory()) {
      throw new ServiceRefused(`"${this.#options.programs}" is not a folder; it should hold a folder for each plugin`);
    }
    return { inNetwork: true, requiresCopyJob: false, requiresUploadJob: false };
  }

  async submit(phase: Phase, job: Job): Promise<JobState> {
    if (phase !== 'plugin') throw new ComputeError(`processes have no ${phase} phase`);
    if (!this.#options.enabled) throw new SubmissionFailed(NOT_ENABLED, false);
    const earlier = await this.inspect(phase, job);
    if (earlier?.status === 'started' || earlier?.status === 'finishedSuccessfully') return earlier;
    const program = await findProgram(this.#options.programs, job);
    await this.remove(job.id);
    const folder = await realpath(await this.#folders.make(job.id));
    const input = join(folder, 'incoming');
    const home = join(folder, 'home');
    await mkdir(input);
    await mkdir(home);
    await stageInputs(job, this.#options.storage, input, 'copy');
    const output = await emptyOutputFolder(job, this.#options.storage);
    const own = replacePathValues(job.arguments, job.pathFlags, input);
    await this.#start({
      folder,
      workingDirectory: home,
      command: program.command,
      arguments: [...program.arguments, ...own, ...(job.pluginType === 'ds' ? [input] : []), output],
      environment: programEnvironment(job, home),
      logLimitBytes: LOG_LIMIT_BYTES,
      graceSeconds: this.#graceSeconds,
    });
    return this.#state(job, { status: 'started', message: 'running', timestamp: new Date().toISOString() });
  }

  async inspect(_phase: Phase, job: Job): Promise<JobState | null> {
    const folder = this.#folders.path(job.id);
    // In this order: a supervisor that ends between the two questions has written how the program ended.
    const isRunning = await isSupervised(folder);
    const exit = await readExit(folder);
    if (exit) return this.#state(job, { ...endState(exit), timestamp: exit.endedAt });
    if (!isRunning) return null;
    const { birthtime } = await stat(join(folder, 'supervisor'));
    return this.#state(job, { status: 'started', message: 'running', timestamp: birthtime.toISOString() });
  }

  watch(phase: Phase, job: Job, changed: () => void): Watch {
    const watching = new JobFolderWatch(this.#folders.path(job.id), async () => {
      // What cannot be read now is for the caller to find out, who asks when he is told.
      const state = await this.inspect(phase, job).catch(() => null);
      if (state !== null && !hasEnded(state.status)) return false;
      this.#watches.delete(watching);
      changed();
      return true;
    });
    this.#watches.add(watching);
    return watching;
  }

  collect(job: Job): Promise<CollectedFiles> {
    const { storage, log } = this.#options;
    return collectOutput({ job, storage, log, folders: this.#folders }, []);
  }

  async cancel(jobId: string): Promise<void> {
    const folder = this.#folders.path(jobId);
    const supervisor = await readIdentity(folder, 'supervisor');
    if (supervisor && isAlive(supervisor) && (await readExit(folder)) === null) {
      process.kill(supervisor.pid, 'SIGTERM');
      const deadline = Date.now() + (this.#graceSeconds + 1) * 1000;
      while (Date.now() < deadline && isAlive(supervisor)) await sleep(20);
    }
    await endSessions(folder);
    if (supervisor && (await readExit(folder)) === null) await writeForcedExit(folder);
  }

  async remove(jobId: string): Promise<void> {
    await endSessions(this.#folders.path(jobId));
    await this.#folders.remove(jobId);
  }

  async close(): Promise<void> {
    for (const watching of this.#watches) watching.stop();
    this.#watches.clear();
  }

  /** The program begins only after the supervisor can be found again: its order is sent when its identity is on disk. */
  async #start(order: SupervisorOrder): Promise<void> {
    const supervisor = spawn(process.execPath, [SUPERVISOR], {
      cwd: order.folder,
      env: {},
      stdio: ['pipe', 'ignore', 'ignore'],
      detached: true,
    });
    const started = new Promise<void>((resolve, reject) => {
      supervisor.once('spawn', resolve);
      supervisor.once('error', reject);
    });
    try {
      await started;
      const identity = supervisor.pid === undefined ? null : identify(supervisor.pid);
      if (identity === null) throw new ComputeError('its supervisor ended at once');
      writeFileSync(join(order.folder, 'supervisor'), JSON.stringify(identity), { mode: 0o600 });
      await sendOrder(supervisor, order);
    } catch (error) {
      supervisor.kill('SIGKILL');
      throw new SubmissionFailed(`the program could not be started: ${String(error)}`, true);
    }
    supervisor.unref();
  }

  async #state(job: Job, known: Pick<JobState, 'status' | 'message' | 'timestamp'>): Promise<JobState> {
    return {
      ...known,
      logs: await readLog(this.#folders.path(job.id)),
      image: job.image,
      command: quoteCommand([...job.entrypoint, ...job.arguments]),
    };
  }
}

const NOT_ENABLED = 'plugins as processes of the server are not turned on here; the operator can do so in the settings';

/** Calls `check` when a file of the folder changes, until it answers true. */
class JobFolderWatch implements Watch {
  readonly #check: () => Promise<boolean>;
  readonly #timer: NodeJS.Timeout;
  readonly #stopNotifications: () => void;
  #isChecking = false;
  #checkAgain = false;

  constructor(folder: string, check: () => Promise<boolean>) {
    this.#check = check;
    this.#timer = setInterval(() => this.#look(), SUPERVISOR_CHECK_MILLISECONDS);
    this.#stopNotifications = notifyOfChanges(folder, () => this.#look());
    setImmediate(() => this.#look());
  }

  stop(): void {
    clearInterval(this.#timer);
    this.#stopNotifications();
    this.#checkAgain = false;
  }

  async #look(): Promise<void> {
    if (this.#isChecking) {
      this.#checkAgain = true;
      return;
    }
    this.#isChecking = true;
    do {
      this.#checkAgain = false;
      if (await this.#check()) this.stop();
    } while (this.#checkAgain);
    this.#isChecking = false;
  }
}

/** A folder that is not there has no changes: the caller's own timer finds that out. */
function notifyOfChanges(folder: string, changed: () => void): () => void {
  try {
    const watcher = watchFolder(folder, (_event, file) => {
      if (file === 'exit') changed();
    });
    watcher.on('error', changed);
    return () => watcher.close();
  } catch {
    return () => {};
  }
}

function programEnvironment(job: Job, home: string): Record<string, string> {
  return {
    PATH: process.env.PATH ?? '/usr/local/bin:/usr/bin:/bin',
    LANG: process.env.LANG ?? 'C.UTF-8',
    ...job.environment,
    HOME: home,
    TMPDIR: home,
  };
}

function sendOrder(supervisor: ChildProcess, order: SupervisorOrder): Promise<void> {
  return new Promise((resolve, reject) => {
    if (supervisor.stdin === null) {
      reject(new ComputeError('its supervisor takes no order'));
      return;
    }
    supervisor.stdin.once('error', reject);
    supervisor.stdin.end(JSON.stringify(order), () => resolve());
  });
}

function endState(exit: ExitRecord): Pick<JobState, 'status' | 'message'> {
  if (exit.error !== null) return { status: 'finishedWithError', message: `not started: ${exit.error}` };
  if (exit.signal !== null) return { status: 'finishedWithError', message: `ended by ${exit.signal}` };
  return {
    status: exit.code === 0 ? 'finishedSuccessfully' : 'finishedWithError',
    message: `exited with ${exit.code}`,
  };
}

async function isSupervised(folder: string): Promise<boolean> {
  const supervisor = await readIdentity(folder, 'supervisor');
  return supervisor !== null && isAlive(supervisor);
}

/** Ends whatever is left of a job, also a program whose supervisor was killed. */
async function endSessions(folder: string): Promise<void> {
  for (const name of ['supervisor', 'program'] as const) {
    const identity = await readIdentity(folder, name);
    if (identity) signalSession(identity, 'SIGKILL');
  }
}

async function readIdentity(folder: string, name: 'supervisor' | 'program'): Promise<ProcessIdentity | null> {
  const text = await readFile(join(folder, name), 'utf8').catch(() => null);
  try {
    return text === null ? null : parseIdentity(text);
  } catch {
    // Cut short by a crash of the machine: the process is gone as well.
    return null;
  }
}

async function readExit(folder: string): Promise<ExitRecord | null> {
  const text = await readFile(join(folder, 'exit'), 'utf8').catch(() => null);
  return text === null ? null : parseExit(text);
}

async function writeForcedExit(folder: string): Promise<void> {
  const now = new Date().toISOString();
  const record: ExitRecord = { code: null, signal: 'SIGKILL', error: null, startedAt: now, endedAt: now };
  await writeFile(join(folder, 'exit.forced'), JSON.stringify(record));
  await rename(join(folder, 'exit.forced'), join(folder, 'exit'));
}

async function readLog(folder: string): Promise<string> {
  const file = await open(join(folder, 'log')).catch(() => null);
  if (file === null) return '';
  try {
    const { size } = await file.stat();
    const length = Math.min(size, LOG_LIMIT_BYTES);
    const { buffer, bytesRead } = await file.read(Buffer.alloc(length), 0, length, size - length);
    return buffer.toString('utf8', 0, bytesRead);
  } finally {
    await file.close();
  }
}
