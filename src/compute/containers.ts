/**
 * Runs plugins in containers over the Docker Engine API, of Docker or Podman. The container's name is the job id, so a job is
 * found again whatever became of the server. Folders are mounted: engine and server share one file system.
 *
 * Below `<data>/jobs/<job id>/`: `incoming` (input that had to be put together), `scratch` (the program's temporary files).
 */
import { chmod, chown, mkdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import type Docker from 'dockerode';
import type { Container, ContainerInspectInfo } from 'dockerode';
import type { Logger } from 'pino';
import type { Storage } from '../storage/storage.ts';
import { quoteCommand } from './command-line.ts';
import { answeredStatus, connect, engineMessage, unreachable } from './container-client.ts';
import { ContainerImages } from './container-images.ts';
import {
  type ContainerSetup,
  containerName,
  containerOptions,
  containerState,
  joinLogFrames,
  OUTPUT_FOLDER,
  programCommand,
  SERVER_LABEL,
} from './container-spec.ts';
import { type ContainerUser, chooseContainerUser } from './container-user.ts';
import { watchContainer } from './container-watch.ts';
import type { CollectedFiles, Engine, EngineDescription, Job, JobState, Phase, Watch } from './engine.ts';
import { LOG_LIMIT_BYTES } from './engine.ts';
import { ComputeError, SubmissionFailed } from './errors.ts';
import { JobFolders } from './job-folder.ts';
import { collectOutput } from './output-folder.ts';
import { emptyOutputFolder, folderToMount, stageInputs } from './staging.ts';

const CALL_TIMEOUT_MILLISECONDS = 60_000;

/** Between asking a program to end and ending it. */
const GRACE_SECONDS = 2;

const LOG_LINES = 1000;

export interface ContainerEngineOptions {
  /** `docker:`, `unix:///path` or `tcp://host:port`. */
  readonly computeUrl: string;
  /** Marks the containers of this server among those of others on the same engine. */
  readonly serverId: string;
  /** `''`, `image` or `uid:gid`, see `container-user.ts`. */
  readonly user: string;
  readonly storage: Storage;
  readonly dataDirectory: string;
  readonly log: Logger;
  readonly pullTimeoutSeconds?: number;
}

interface EngineFacts {
  readonly rootless: boolean;
  readonly podman: boolean;
}

export class ContainerEngine implements Engine {
  readonly #options: ContainerEngineOptions;
  readonly #docker: Docker;
  readonly #images: ContainerImages;
  readonly #folders: JobFolders;
  readonly #watches = new Set<Watch>();
  #facts: EngineFacts | null = null;
  #init = true;

  /** @throws {ServiceRefused} when the compute_url names no engine */
  constructor(options: ContainerEngineOptions) {
    this.#options = options;
    this.#docker = connect(options.computeUrl);
    this.#images = new ContainerImages(this.#docker, options.computeUrl, options.pullTimeoutSeconds ?? 900);
    this.#folders = new JobFolders(options.dataDirectory);
  }

  async describe(): Promise<EngineDescription> {
    this.#facts = null;
    await this.#engineFacts();
    return { inNetwork: true, requiresCopyJob: false, requiresUploadJob: false };
  }

  async submit(phase: Phase, job: Job): Promise<JobState> {
    if (phase !== 'plugin') throw new ComputeError(`containers have no ${phase} phase`);
    if (job.limits.numberOfWorkers > 1) {
      throw new SubmissionFailed(`containers run with 1 worker, not ${job.limits.numberOfWorkers}`, false);
    }
    const container = this.#container(job.id);
    const earlier = await this.#inspect(job.id);
    if (earlier) {
      this.#refuseForeign(earlier);
      const state = containerState(job, earlier, '');
      if (state.status === 'started' || state.status === 'finishedSuccessfully') return state;
      if (state.status === 'notStarted') return this.#start(container, job);
      await this.#removeContainer(container);
    }
    await this.#create(job);
    return this.#start(container, job);
  }

  async inspect(_phase: Phase, job: Job): Promise<JobState | null> {
    const container = await this.#inspect(job.id);
    if (container === null || this.#isForeign(container)) return null;
    return containerState(job, container, await this.#logs(job.id));
  }

  watch(_phase: Phase, job: Job, changed: () => void): Watch {
    const watching = watchContainer(this.#container(job.id), () => {
      this.#watches.delete(watching);
      changed();
    });
    this.#watches.add(watching);
    return watching;
  }

  collect(job: Job): Promise<CollectedFiles> {
    const { storage, log } = this.#options;
    return collectOutput({ job, storage, log, folders: this.#folders }, [OUTPUT_FOLDER]);
  }

  async cancel(jobId: string): Promise<void> {
    const found = await this.#inspect(jobId);
    if (found === null || this.#isForeign(found)) return;
    await this.#ask((abortSignal) => this.#container(jobId).stop({ t: GRACE_SECONDS, abortSignal }), [304, 404]);
  }

  async remove(jobId: string): Promise<void> {
    const found = await this.#inspect(jobId);
    if (found !== null && !this.#isForeign(found)) await this.#removeContainer(this.#container(jobId));
    await this.#folders.remove(jobId);
  }

  async close(): Promise<void> {
    for (const watching of this.#watches) watching.stop();
    this.#watches.clear();
  }

  async #create(job: Job): Promise<void> {
    const setup = await this.#prepare(job);
    try {
      await this.#createContainer(job, setup);
    } catch (error) {
      if (answeredStatus(error) !== 404) throw this.#submissionFailure(job, error);
      // The image was there a moment ago.
      this.#images.forget(job.image);
      await this.#images.facts(job.image);
      await this.#createContainer(job, setup).catch((again) => {
        throw this.#submissionFailure(job, again);
      });
    }
  }

  async #createContainer(job: Job, setup: Omit<ContainerSetup, 'init'>): Promise<void> {
    const create = (init: boolean) =>
      this.#docker.createContainer({ ...containerOptions(job, { ...setup, init }), abortSignal: timeLimit() });
    try {
      await create(this.#init);
    } catch (error) {
      // An engine may be installed without the program for this.
      if (!this.#init || !/\binit\b|catatonit|docker-init/.test(engineMessage(error))) throw error;
      await create(false);
      this.#init = false;
    }
  }

  /** Everything that a container needs on disk. */
  async #prepare(job: Job): Promise<Omit<ContainerSetup, 'init'>> {
    const { storage, serverId } = this.#options;
    const [{ rootless, podman }, image] = await Promise.all([this.#engineFacts(), this.#images.facts(job.image)]);
    const server = { uid: process.getuid?.() ?? 0, gid: process.getgid?.() ?? 0 };
    const user = chooseContainerUser({ setting: this.#options.user, server, imageUser: image.user, rootless, podman });
    await this.#folders.remove(job.id);
    const folder = await this.#folders.make(job.id);
    const inputFolder = (await folderToMount(job, storage)) ?? (await this.#stage(job, folder));
    const outputFolder = await emptyOutputFolder(job, storage);
    const scratchFolder = join(folder, 'scratch');
    await mkdir(scratchFolder);
    await makeWritable(outputFolder, user);
    await makeWritable(scratchFolder, user);
    return { serverId, user, inputFolder, outputFolder, scratchFolder, podman };
  }

  async #stage(job: Job, folder: string): Promise<string> {
    const inputFolder = join(folder, 'incoming');
    await rm(inputFolder, { recursive: true, force: true });
    await mkdir(inputFolder);
    await stageInputs(job, this.#options.storage, inputFolder, 'link');
    return inputFolder;
  }

  async #start(container: Container, job: Job): Promise<JobState> {
    try {
      await container.start({ abortSignal: timeLimit() });
    } catch (error) {
      // 304: it runs already.
      if (answeredStatus(error) !== 304) {
        const failure = this.#submissionFailure(job, error);
        if (failure instanceof SubmissionFailed) await this.#removeContainer(container);
        throw failure;
      }
    }
    return {
      status: 'started',
      message: 'running',
      logs: '',
      timestamp: new Date().toISOString(),
      image: job.image,
      command: quoteCommand(programCommand(job)),
    };
  }

  #container(jobId: string): Docker.Container {
    return this.#docker.getContainer(containerName(jobId, this.#options.serverId));
  }

  async #inspect(jobId: string): Promise<ContainerInspectInfo | null> {
    return this.#ask((abortSignal) => this.#container(jobId).inspect({ abortSignal }), [404]);
  }

  async #logs(jobId: string): Promise<string> {
    const frames = await this.#ask(
      (abortSignal) => this.#container(jobId).logs({ stdout: true, stderr: true, tail: LOG_LINES, abortSignal }),
      [404, 409],
    );
    return frames === null ? '' : joinLogFrames(frames, LOG_LIMIT_BYTES);
  }

  async #removeContainer(container: Container): Promise<void> {
    // 409: its removal is in progress.
    await this.#ask((abortSignal) => container.remove({ force: true, v: true, abortSignal }), [404, 409]);
  }

  async #engineFacts(): Promise<EngineFacts> {
    if (this.#facts) return this.#facts;
    const info: unknown = await this.#ask(() => this.#docker.info());
    const text = JSON.stringify(info);
    this.#facts = { rootless: /"name=rootless"|"Rootless":true/.test(text), podman: text.includes('"BuildahVersion"') };
    return this.#facts;
  }

  /** Asks the engine; null for the answers that mean there is nothing (more) to do. @throws {ServiceUnreachable} */
  async #ask<T>(call: (abortSignal: AbortSignal) => Promise<T>, nothing: readonly number[] = []): Promise<T | null> {
    try {
      return await call(timeLimit());
    } catch (error) {
      if (nothing.includes(answeredStatus(error) ?? 0)) return null;
      throw unreachable(error, this.#options.computeUrl);
    }
  }

  #isForeign(container: ContainerInspectInfo): boolean {
    return container.Config.Labels?.[SERVER_LABEL] !== this.#options.serverId;
  }

  #refuseForeign(container: ContainerInspectInfo): void {
    if (!this.#isForeign(container)) return;
    throw new SubmissionFailed(
      `a container "${container.Name.replace(/^\//, '')}" of somebody else is on the compute resource; servers that share one need different job id prefixes`,
      false,
    );
  }

  #submissionFailure(job: Job, error: unknown): ComputeError {
    if (error instanceof ComputeError) return error;
    const status = answeredStatus(error);
    if (status === null) return unreachable(error, this.#options.computeUrl);
    const reason = engineMessage(error);
    // Podman answers 500 for what only the image or the descriptor can mend.
    const mayPass = status >= 500 && !/not found|no such file|permission denied|not a directory/i.test(reason);
    return new SubmissionFailed(`a container of image "${job.image}" could not be started: ${reason}`, mayPass);
  }
}

function timeLimit(): AbortSignal {
  return AbortSignal.timeout(CALL_TIMEOUT_MILLISECONDS);
}

/** Lets the program's user write to a folder; `secureOutput` takes it back. */
async function makeWritable(folder: string, user: ContainerUser): Promise<void> {
  const uid = process.getuid?.();
  if (user.owner && user.owner.uid === uid) return;
  if (user.owner && uid === 0) {
    await chown(folder, user.owner.uid, user.owner.gid);
    return;
  }
  await chmod(folder, 0o777);
}
