/** What a container engine is asked to make of a job, and how its answers read. */
import type { ContainerCreateOptions, ContainerInspectInfo, HostConfig } from 'dockerode';
import { quoteCommand, replacePathValues } from './command-line.ts';
import type { ContainerUser } from './container-user.ts';
import type { Job, JobState, JobStatus } from './engine.ts';

export const INPUT_FOLDER = '/share/incoming';
export const OUTPUT_FOLDER = '/share/outgoing';
const SCRATCH_FOLDER = '/share/scratch';

export const SERVER_LABEL = 'hypercube.server';
const JOB_LABEL = 'hypercube.job';

const MAXIMUM_PROCESSES = 4096;

export interface ContainerSetup {
  readonly serverId: string;
  readonly user: ContainerUser;
  /** Absolute paths on the engine's machine. */
  readonly inputFolder: string;
  readonly outputFolder: string;
  readonly scratchFolder: string;
  readonly podman: boolean;
  /** Whether a small first process shall forward signals and collect orphans. */
  readonly init: boolean;
}

/** Several servers may share an engine and have instances of the same number. */
export function containerName(jobId: string, serverId: string): string {
  return `${jobId}-${serverId.slice(0, 8)}`;
}

export function containerOptions(job: Job, setup: ContainerSetup): ContainerCreateOptions {
  const { user } = setup;
  return {
    name: containerName(job.id, setup.serverId),
    Image: job.image,
    // The image's own entrypoint stays in front, as plugins that activate an environment in it expect.
    Cmd: programCommand(job),
    Env: environment(job, user),
    ...(user.user !== null && { User: user.user }),
    Labels: { [SERVER_LABEL]: setup.serverId, [JOB_LABEL]: job.id },
    HostConfig: {
      Mounts: [
        { Type: 'bind', Source: setup.inputFolder, Target: INPUT_FOLDER, ReadOnly: true },
        { Type: 'bind', Source: setup.outputFolder, Target: OUTPUT_FOLDER, ReadOnly: false },
        { Type: 'bind', Source: setup.scratchFolder, Target: SCRATCH_FOLDER, ReadOnly: false },
      ],
      CapDrop: ['ALL'],
      SecurityOpt: ['no-new-privileges'],
      ...(setup.init && { Init: true }),
      ...(user.keepId && { UsernsMode: 'keep-id' }),
      ...limits(job),
      LogConfig: setup.podman
        ? { Type: 'k8s-file', Config: { 'max-size': '1m' } }
        : { Type: 'json-file', Config: { 'max-size': '1m', 'max-file': '2' } },
    },
  };
}

export function programCommand(job: Job): string[] {
  return [
    ...job.entrypoint,
    ...replacePathValues(job.arguments, job.pathFlags, INPUT_FOLDER),
    ...(job.pluginType === 'ds' ? [INPUT_FOLDER] : []),
    OUTPUT_FOLDER,
  ];
}

/** State of a container in the words of the compute protocol. */
export function containerState(job: Job, container: ContainerInspectInfo, logs: string): JobState {
  const { State: state } = container;
  const neverHappened = (time: string) => time === '' || time.startsWith('0001-');
  const timestamp = neverHappened(state.FinishedAt) ? state.StartedAt : state.FinishedAt;
  return {
    status: statusOf(state),
    message: messageOf(state, job, logs),
    logs,
    timestamp: neverHappened(timestamp) ? '' : timestamp,
    image: job.image,
    command: quoteCommand(programCommand(job)),
  };
}

type State = ContainerInspectInfo['State'];

function statusOf(state: State): JobStatus {
  if (state.OOMKilled || state.Dead) return 'finishedWithError';
  const status: string = state.Status;
  switch (status) {
    case 'created':
    case 'configured':
    case 'initialized':
      return 'notStarted';
    case 'running':
    case 'paused':
    case 'restarting':
    case 'stopping':
      return 'started';
    case 'exited':
    case 'stopped':
      return state.ExitCode === 0 ? 'finishedSuccessfully' : 'finishedWithError';
    case 'dead':
      return 'finishedWithError';
    default:
      return 'undefined';
  }
}

/** What the first process of a container (Podman's, Docker's) writes when there is nothing to run. */
const NO_PROGRAM = /failed to exec pid1|\[FATAL tini/;

function messageOf(state: State, job: Job, logs: string): string {
  if (state.OOMKilled) return 'ended by the engine: the program needed more memory than its limit';
  if (state.Error) return `${state.Status}: ${state.Error}`;
  if (state.ExitCode === 127 || (state.ExitCode !== 0 && NO_PROGRAM.test(logs))) {
    return `exited with ${state.ExitCode}: the image may have no program "${job.entrypoint.join(' ')}"`;
  }
  return state.Status === 'exited' && state.ExitCode !== 0 ? `exited with ${state.ExitCode}` : state.Status;
}

function environment(job: Job, user: ContainerUser): string[] {
  // A user that the image does not know has no home; temporary files go to the disk, not against the memory limit.
  const home = user.user === null ? {} : { HOME: SCRATCH_FOLDER };
  const all = { TMPDIR: SCRATCH_FOLDER, ...home, ...job.environment };
  return Object.entries(all).map(([name, value]) => `${name}=${value}`);
}

function limits(job: Job): Partial<HostConfig> {
  const { cpuMillicores, memoryMebibytes, gpus } = job.limits;
  const memoryBytes = memoryMebibytes * 1024 * 1024;
  return {
    PidsLimit: MAXIMUM_PROCESSES,
    NanoCpus: cpuMillicores * 1_000_000,
    Memory: memoryBytes,
    MemorySwap: memoryBytes,
    ...(gpus > 0 && {
      DeviceRequests: [{ Driver: '', Count: gpus, DeviceIDs: [], Capabilities: [['gpu']], Options: {} }],
    }),
  };
}

/** Output of a container without a terminal: frames of 8 bytes header (stream, 3 × 0, length big-endian) and payload. */
export function joinLogFrames(frames: Buffer, limitBytes: number): string {
  const parts: Buffer[] = [];
  for (let at = 0; at + 8 <= frames.length; ) {
    const length = frames.readUInt32BE(at + 4);
    parts.push(frames.subarray(at + 8, at + 8 + length));
    at += 8 + length;
  }
  return Buffer.concat(parts).subarray(-limitBytes).toString('utf8');
}
