/**
 * What runs plugins.
 *
 * Terminology
 *   compute resource  a row that names a place where plugins run; its `compute_url` picks the engine by scheme
 *   engine            the code that makes one kind of compute resource run jobs; one file each beside this one
 *   job               one run of a plugin's program, known to the engine by its job id for its whole life
 *   phase             what an engine does for a job, one after the other: `copy` (stage the inputs), `plugin` (run the
 *                     program), `upload` (bring the outputs to storage). Most engines only have `plugin`
 *   collect           bring the outputs to the job's output folder in storage, if they are not there already
 *
 * Every call is idempotent by job id: a step may be repeated after a crash and must then find what the first try left.
 */

export type Phase = 'copy' | 'plugin' | 'upload';

export type PluginType = 'fs' | 'ds' | 'ts';

/** A job's state in the words of the compute protocol (pfcon), which the wire shows in `raw` and `summary`. */
export type JobStatus = 'notStarted' | 'started' | 'finishedSuccessfully' | 'finishedWithError' | 'undefined';

/** Whether nothing more will happen in this phase. */
export function hasEnded(status: JobStatus): boolean {
  return status !== 'notStarted' && status !== 'started';
}

export interface JobState {
  readonly status: JobStatus;
  /** What the engine says of it in words, such as `exited` or the reason of a failure. */
  readonly message: string;
  /** The last lines of the program's output, standard error included; at most `LOG_LIMIT_BYTES`. */
  readonly logs: string;
  /** ISO 8601, end else start of the run; empty when it did not start. */
  readonly timestamp: string;
  readonly image: string;
  /** The command line as one text. */
  readonly command: string;
  /** Why the machinery (not the program) failed: a code of `instances.md` section 10, if the engine knows better than its caller. */
  readonly errorCode?: string;
}

export const LOG_LIMIT_BYTES = 256 * 1024;

/** One file of a job's input: where it lies in storage and where the program shall find it. */
export interface InputFile {
  /** Path below the input folder, `/` between components, never absolute, never with `..`. */
  readonly relativePath: string;
  /** Path in storage, or null for a file whose whole content is `content` (link files in the zip layout). */
  readonly storagePath: string | null;
  readonly content?: string;
  readonly sizeBytes: number;
}

export interface Job {
  /** `<job id prefix of the server><instance id>`: container name, key of the engine's own records. */
  readonly id: string;
  readonly instanceId: number;
  readonly pluginType: PluginType;
  readonly image: string;
  /** `execshell` if there is one, then `selfpath/selfexec`. */
  readonly entrypoint: readonly string[];
  /** Flags and values in the order of the protocol (`compute.md` section 4). */
  readonly arguments: readonly string[];
  /** Flags whose following argument is to be replaced by the program's input folder. */
  readonly pathFlags: readonly string[];
  readonly environment: Readonly<Record<string, string>>;
  readonly ownerUsername: string;
  readonly limits: {
    readonly numberOfWorkers: number;
    readonly cpuMillicores: number;
    readonly memoryMebibytes: number;
    readonly gpus: number;
  };
  /** Seconds that a phase may take before it is ended with CODE13; null: no limit. */
  readonly maxExecutionSeconds: number | null;
  /** Storage paths that the input is made of, as sent to in-network services. */
  readonly inputPaths: readonly string[];
  /** Storage path of the output folder; the folder exists before the first submission. */
  readonly outputPath: string;
  /** Inputs merged and links resolved, as the program shall see them (layout of a copy job). */
  stagedInputs(): AsyncIterable<InputFile>;
  /** Inputs under their full storage paths with the link files themselves (layout of the zip protocol). */
  zippedInputs(): AsyncIterable<InputFile>;
}

/** What an engine says of itself when a compute resource is registered and when it is looked at again. */
export interface EngineDescription {
  readonly inNetwork: boolean;
  readonly requiresCopyJob: boolean;
  readonly requiresUploadJob: boolean;
}

/** Outputs after `collect`: paths below the output folder, all of them files present in storage. */
export type CollectedFiles = readonly string[];

export interface Watch {
  /** Stops watching; the job goes on. */
  stop(): void;
}

export interface Engine {
  /**
   * Asks the service who it is.
   * @throws {ServiceUnreachable} when nothing answers, {ServiceRefused} when it answers that the credentials or its kind are wrong.
   */
  describe(): Promise<EngineDescription>;
  /**
   * Starts a phase, or finds the one that was started before under this id; one that failed before is started again, with an
   * empty output folder.
   * @throws {SubmissionFailed} {ServiceUnreachable}
   */
  submit(phase: Phase, job: Job): Promise<JobState>;
  /** The present state; null when the engine knows no such job (definitely, not for want of an answer). @throws {ServiceUnreachable} */
  inspect(phase: Phase, job: Job): Promise<JobState | null>;
  /** Calls `changed` (at least) once as soon as `inspect` may say that the phase has ended. */
  watch(phase: Phase, job: Job, changed: () => void): Watch;
  /** Brings the outputs to `job.outputPath` and lists them. Called after success, and after failure as far as possible. @throws {CollectionFailed} {ServiceUnreachable} */
  collect(job: Job): Promise<CollectedFiles>;
  /** Ends whatever of the job is running, at once. Nothing there is success. @throws {ServiceUnreachable} */
  cancel(jobId: string): Promise<void>;
  /** Removes all that the engine keeps of an ended job: staged input, container, records. Nothing there is success. @throws {ServiceUnreachable} */
  remove(jobId: string): Promise<void>;
  /** Ends the engine's own connections and timers; running jobs go on. */
  close(): Promise<void>;
}
