/** The form fields of submissions (compute protocol, section 4). They hold secrets of the job's owner: never log them. */
import type { Job } from './engine.ts';
import type { FormFields } from './pfcon-http.ts';

/** Where an in-network service finds input and output in the shared storage. */
export interface SharedPaths {
  readonly inputPaths: readonly string[];
  readonly outputPath: string;
}

export function copyFields(job: Job): FormFields {
  return [
    ['jid', job.id],
    ...job.inputPaths.map((path) => ['input_dirs', path] as const),
    ['output_dir', job.outputPath],
    ...limitFields(job),
  ];
}

export function uploadFields(job: Job): FormFields {
  return [['jid', job.id], ['job_output_path', job.outputPath], ...limitFields(job)];
}

/** @param shared null for a service that gets the input as a file of the form */
export function pluginFields(job: Job, shared: SharedPaths | null): FormFields {
  return [
    ['jid', job.id],
    ...repeated('entrypoint', job.entrypoint),
    ...repeated('args', job.arguments),
    ...repeated('args_path_flags', job.pathFlags),
    ['auid', job.ownerUsername],
    ['number_of_workers', String(job.limits.numberOfWorkers)],
    ...limitFields(job),
    ['gpu_limit', String(job.limits.gpus)],
    ['image', job.image],
    ['type', job.pluginType],
    ...repeated(
      'env',
      Object.entries(job.environment).map(([name, value]) => `${name}=${value}`),
    ),
    ...repeated('input_dirs', shared?.inputPaths ?? []),
    ...repeated('output_dir', shared ? [shared.outputPath] : []),
  ];
}

function limitFields(job: Job): FormFields {
  return [
    ['cpu_limit', String(job.limits.cpuMillicores)],
    ['memory_limit', String(job.limits.memoryMebibytes)],
  ];
}

function repeated(name: string, values: readonly string[]): FormFields {
  return values.map((value) => [name, value] as const);
}
