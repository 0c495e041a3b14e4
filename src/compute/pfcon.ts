/**
 * Runs plugins through a compute service (pfcon) over HTTP. An in-network service shares storage with the server and is told
 * paths; any other gets the input as a zip and gives the output as one.
 *
 * Below `<data>/jobs/<job id>/` while they are sent: `input.zip`, `output.zip`.
 */
import { createWriteStream } from 'node:fs';
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import { AlreadyThere } from '../storage/errors.ts';
import type { Storage } from '../storage/storage.ts';
import type { CollectedFiles, Engine, EngineDescription, Job, JobState, Phase, Watch } from './engine.ts';
import { hasEnded } from './engine.ts';
import { CollectionFailed, ComputeError, ServiceRefused, ServiceUnreachable, SubmissionFailed } from './errors.ts';
import { JobFolders } from './job-folder.ts';
import { parseDescription, parseFileList, parseJobState } from './pfcon-answers.ts';
import { type JobKind, PfconAnswer, PfconClient, type PfconClientOptions, TIMEOUTS } from './pfcon-client.ts';
import { copyFields, pluginFields, uploadFields } from './pfcon-fields.ts';
import { PfconPoller } from './pfcon-poller.ts';
import { unpackZip, writeZip } from './zip.ts';

export interface PfconEngineOptions extends PfconClientOptions {
  /** What the service said of itself when it was registered. */
  readonly described: EngineDescription;
  readonly storage: Storage;
  readonly dataDirectory: string;
  /** How long listed files may take to appear in the shared storage. */
  readonly missingFilesSeconds?: number;
  /** How long `remove` waits for the service to delete a job's data. */
  readonly deletionSeconds?: number;
}

const KINDS: Readonly<Record<Phase, JobKind>> = { copy: 'copyjobs', plugin: 'pluginjobs', upload: 'uploadjobs' };

/** Input folder for services that mount one and get none: in storage, but not in the tree. */
const NO_INPUT_FOLDER = 'SERVICES/.no-input';

export class PfconEngine implements Engine {
  readonly #options: PfconEngineOptions;
  readonly #client: PfconClient;
  readonly #poller = new PfconPoller();
  readonly #folders: JobFolders;
  /** Answers to submissions that made no job because there was nothing to do; they cannot be asked for again. */
  readonly #skipped = new Map<string, JobState>();

  constructor(options: PfconEngineOptions) {
    this.#options = options;
    this.#client = new PfconClient(options);
    this.#folders = new JobFolders(options.dataDirectory);
  }

  async describe(): Promise<EngineDescription> {
    try {
      return parseDescription(await this.#client.json('GET', 'pluginjobs/', { timeoutSeconds: TIMEOUTS.token }));
    } catch (error) {
      if (error instanceof PfconAnswer) {
        throw error.status !== 401 && error.mayPass
          ? new ServiceUnreachable(error.message)
          : new ServiceRefused(error.message);
      }
      throw error;
    }
  }

  async submit(phase: Phase, job: Job): Promise<JobState> {
    try {
      const state = parseJobState(await this.#post(phase, job));
      if (state.message.endsWith('Skipped')) this.#skipped.set(`${phase} ${job.id}`, state);
      return state;
    } catch (error) {
      if (error instanceof PfconAnswer) throw new SubmissionFailed(error.message, error.mayPass);
      if (error instanceof ServiceRefused) throw new SubmissionFailed(error.message, false);
      throw error;
    }
  }

  async inspect(phase: Phase, job: Job): Promise<JobState | null> {
    const skipped = this.#skipped.get(`${phase} ${job.id}`);
    if (skipped) return skipped;
    return this.#status(KINDS[phase], job.id);
  }

  watch(phase: Phase, job: Job, changed: () => void): Watch {
    return this.#poller.add({ ask: async () => (await this.inspect(phase, job))?.status ?? null, changed });
  }

  async collect(job: Job): Promise<CollectedFiles> {
    try {
      return this.#options.described.inNetwork ? await this.#collectShared(job) : await this.#collectZip(job);
    } catch (error) {
      if (error instanceof PfconAnswer || error instanceof ServiceRefused) {
        throw new CollectionFailed(error.message, 'CODE03');
      }
      if (error instanceof ComputeError) throw error;
      throw new CollectionFailed(`the outputs could not be stored: ${messageOf(error)}`, 'CODE07');
    }
  }

  async cancel(jobId: string): Promise<void> {
    await this.#deleteAll(jobId, this.#kindsOfJobs());
  }

  async remove(jobId: string): Promise<void> {
    await this.#deleteData(jobId);
    await this.#deleteAll(jobId, [...this.#kindsOfJobs(), 'deletejobs']);
    for (const phase of Object.keys(KINDS)) this.#skipped.delete(`${phase} ${jobId}`);
    await this.#folders.remove(jobId);
  }

  async close(): Promise<void> {
    this.#poller.close();
    this.#client.close();
  }

  #post(phase: Phase, job: Job): Promise<unknown> {
    switch (phase) {
      case 'copy':
        return this.#client.post('copyjobs', copyFields(job));
      case 'upload':
        return this.#client.post('uploadjobs', uploadFields(job));
      case 'plugin':
        return this.#options.described.inNetwork ? this.#postShared(job) : this.#postZip(job);
    }
  }

  async #postShared(job: Job): Promise<unknown> {
    const { requiresCopyJob } = this.#options.described;
    const inputPaths = job.inputPaths.length > 0 || requiresCopyJob ? job.inputPaths : [await this.#noInputFolder()];
    return this.#client.post('pluginjobs', pluginFields(job, { inputPaths, outputPath: job.outputPath }));
  }

  async #postZip(job: Job): Promise<unknown> {
    const file = join(await this.#folders.make(job.id), 'input.zip');
    try {
      await writeZip(job.zippedInputs(), this.#options.storage, file);
    } catch (error) {
      throw new SubmissionFailed(`the input could not be collected: ${messageOf(error)}`, false);
    }
    const fields = pluginFields(job, null);
    const answer = await this.#client.json('POST', 'pluginjobs/', {
      body: { kind: 'multipart', fields, fileField: 'data_file', file },
      timeoutSeconds: TIMEOUTS.zip,
      renewOnBrokenConnection: true,
    });
    await rm(file, { force: true });
    return answer;
  }

  async #noInputFolder(): Promise<string> {
    const { storage } = this.#options;
    const path = `${NO_INPUT_FOLDER}/no-input.txt`;
    if (await storage.exists(path)) return NO_INPUT_FOLDER;
    const placeholder = await storage.receive(Readable.from([Buffer.from('This job has no input.\n')]));
    try {
      await storage.place(placeholder, path);
    } catch (error) {
      // Another job without input was faster.
      if (!(error instanceof AlreadyThere)) throw error;
      await storage.discard(placeholder);
    }
    return NO_INPUT_FOLDER;
  }

  /** null when the service knows no such job. @throws {ServiceUnreachable} for every other answer */
  async #status(kind: JobKind, jobId: string): Promise<JobState | null> {
    try {
      return parseJobState(await this.#client.status(kind, jobId));
    } catch (error) {
      if (error instanceof PfconAnswer && error.status === 404) return null;
      throw asUnreachable(error);
    }
  }

  async #collectShared(job: Job): Promise<CollectedFiles> {
    const query = new URLSearchParams({ job_output_path: job.outputPath });
    const options = { timeoutSeconds: TIMEOUTS.fileList };
    const files = parseFileList(
      await this.#client.json('GET', `pluginjobs/${job.id}/file/?${query}`, options),
      job.outputPath,
    );
    await this.#waitFor(files, job.outputPath);
    return files;
  }

  /** Storage shared over a network may show new files late. Only plain files count: it does not follow links. */
  async #waitFor(files: readonly string[], folder: string): Promise<void> {
    const { storage, missingFilesSeconds = 60 } = this.#options;
    const missing = new Set(files);
    const deadline = Date.now() + missingFilesSeconds * 1000;
    for (let pause = 100; ; pause = Math.min(2 * pause, 5000)) {
      for await (const { path } of storage.list(folder)) missing.delete(path.slice(folder.length + 1));
      const [first] = missing;
      if (first === undefined) return;
      if (Date.now() + pause > deadline) {
        const others = missing.size > 1 ? ` and ${missing.size - 1} more` : '';
        throw new CollectionFailed(`"${first}"${others}, which the service lists, is not in storage`, 'CODE14');
      }
      await sleep(pause);
    }
  }

  async #collectZip(job: Job): Promise<CollectedFiles> {
    const file = join(await this.#folders.make(job.id), 'output.zip');
    const answer = await this.#client.call('GET', `pluginjobs/${job.id}/file/`, {
      timeoutSeconds: TIMEOUTS.zip,
      renewOnBrokenConnection: true,
    });
    try {
      await pipeline(answer.body, createWriteStream(file, { mode: 0o600 }));
    } catch (error) {
      if (answer.body.complete) throw error;
      throw new ServiceUnreachable(`the zip of the outputs broke off: ${messageOf(error)}`);
    }
    const files = await unpackZip(file, this.#options.storage, job.outputPath);
    await rm(file, { force: true });
    return files;
  }

  /** Has the service delete what it keeps of a job's data. */
  async #deleteData(jobId: string): Promise<void> {
    let state: JobState | null;
    try {
      state = parseJobState(await this.#client.post('deletejobs', [['jid', jobId]]));
    } catch (error) {
      throw asUnreachable(error);
    }
    // A skipped deletion made no job that could be asked for.
    if (state.message === 'deleteSkipped') return;
    const deadline = Date.now() + (this.#options.deletionSeconds ?? 20) * 1000;
    for (let pause = 100; ; pause *= 1.5) {
      // Also when it has ended at once: with this answer the service forgets the job's folder.
      state = await this.#status('deletejobs', jobId);
      if (state === null || state.status === 'finishedSuccessfully') return;
      if (hasEnded(state.status)) throw new ServiceUnreachable(`the service could not delete the data of ${jobId}`);
      if (Date.now() + pause > deadline) throw new ServiceUnreachable(`the service still deletes the data of ${jobId}`);
      await sleep(pause);
    }
  }

  /** Kinds of jobs that the program's phases may have made, the running one first. */
  #kindsOfJobs(): JobKind[] {
    const { requiresCopyJob, requiresUploadJob } = this.#options.described;
    return [
      'pluginjobs',
      ...(requiresCopyJob ? (['copyjobs'] as const) : []),
      ...(requiresUploadJob ? (['uploadjobs'] as const) : []),
    ];
  }

  async #deleteAll(jobId: string, kinds: readonly JobKind[]): Promise<void> {
    try {
      await Promise.all(kinds.map((kind) => this.#client.delete(kind, jobId)));
    } catch (error) {
      throw asUnreachable(error);
    }
  }
}

/** For calls that are simply made again later, whatever the service answered. */
function asUnreachable(error: unknown): unknown {
  if (error instanceof PfconAnswer || error instanceof ServiceRefused) return new ServiceUnreachable(error.message);
  return error;
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
