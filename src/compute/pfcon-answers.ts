/** The answers of a compute service (compute protocol, sections 3, 4, 6 and 7), checked. */
import { componentProblem } from '../storage/paths.ts';
import type { EngineDescription, JobState, JobStatus } from './engine.ts';
import { CollectionFailed, ServiceRefused, ServiceUnreachable } from './errors.ts';

/** Kinds of shared storage that are the server's own: a folder tree. */
const SHARED_STORAGES = ['fslink', 'filesystem'];

const STATUSES: readonly JobStatus[] = [
  'notStarted',
  'started',
  'finishedSuccessfully',
  'finishedWithError',
  'undefined',
];

/** @throws {ServiceRefused} when it is no compute service, or one that shares another storage */
export function parseDescription(answer: unknown): EngineDescription {
  const { pfcon_innetwork, storage_env, requires_copy_job, requires_upload_job } = members(answer);
  if (typeof pfcon_innetwork !== 'boolean')
    throw new ServiceRefused('the service does not answer as a compute service');
  if (pfcon_innetwork && !SHARED_STORAGES.includes(String(storage_env))) {
    throw new ServiceRefused(
      `the service is in-network with storage "${storage_env}", but this server's is a file system: ${SHARED_STORAGES.join(' or ')} would be right`,
    );
  }
  return {
    inNetwork: pfcon_innetwork,
    requiresCopyJob: requires_copy_job === true,
    requiresUploadJob: requires_upload_job === true,
  };
}

/** @throws {ServiceUnreachable} for an answer that tells no job */
export function parseJobState(answer: unknown): JobState {
  const { compute } = members(answer);
  const { status, message, logs, timestamp, image, cmd } = members(compute);
  if (typeof status !== 'string') throw new ServiceUnreachable('the service answers without the status of the job');
  const time = textOf(timestamp);
  return {
    status: STATUSES.find((known) => known === status) ?? 'undefined',
    message: textOf(message),
    logs: textOf(logs),
    timestamp: time.startsWith('0001-') ? '' : time,
    image: textOf(image),
    command: textOf(cmd),
  };
}

/**
 * The listed files, as paths below the output folder.
 * @throws {CollectionFailed} CODE16 when they are of another folder, CODE03 when it is no list
 */
export function parseFileList(answer: unknown, outputPath: string): string[] {
  const { job_output_path, rel_file_paths } = members(answer);
  if (!Array.isArray(rel_file_paths))
    throw new CollectionFailed('the service answers without a list of files', 'CODE03');
  const answered = textOf(job_output_path).replace(/^\/+|\/+$/g, '');
  if (answered !== outputPath) {
    throw new CollectionFailed(`the service answers for "${answered}" instead of "${outputPath}"`, 'CODE16');
  }
  return rel_file_paths.map((path: unknown) => {
    const problem = textOf(path)
      .split('/')
      .map(componentProblem)
      .find((found) => found !== null);
    if (problem === undefined) return textOf(path);
    throw new CollectionFailed(`the service lists a file ${JSON.stringify(path)}: ${problem}`, 'CODE16');
  });
}

function members(value: unknown): Record<string, unknown> {
  return typeof value === 'object' && value !== null ? Object.fromEntries(Object.entries(value)) : {};
}

function textOf(value: unknown): string {
  return typeof value === 'string' ? value : '';
}
