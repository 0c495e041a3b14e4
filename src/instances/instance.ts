/** A plugin instance with all that a step needs to know, read in one statement. */
import { sql } from 'kysely';
import type { PluginType } from '../compute/engine.ts';
import type { Queries } from '../database/database.ts';
import type { Status } from './status.ts';

export interface Instance {
  readonly id: number;
  readonly status: Status;
  readonly feedId: number;
  readonly previousId: number | null;
  readonly owner: {
    readonly id: number;
    readonly username: string;
    readonly email: string;
    readonly isAdministrator: boolean;
  };
  readonly plugin: {
    readonly id: number;
    readonly name: string;
    readonly type: PluginType;
    readonly image: string;
    readonly execshell: string;
    readonly selfpath: string;
    readonly selfexec: string;
  };
  /** null when the compute resource has been removed. */
  readonly resource: {
    readonly id: number;
    readonly url: string;
    readonly requiresCopyJob: boolean;
    readonly requiresUploadJob: boolean;
  } | null;
  /** `<prefix of the server><instance id>` */
  readonly jobId: string;
  readonly jobIdPrefix: string;
  /** null when the folder has been deleted. */
  readonly output: { readonly folderId: number; readonly path: string } | null;
  readonly limits: {
    readonly numberOfWorkers: number;
    readonly cpuMillicores: number;
    readonly memoryMebibytes: number;
    readonly gpus: number;
  };
  readonly admitted: boolean;
  /** Seconds since the present phase was submitted; null before. */
  readonly phaseSeconds: number | null;
  /** Seconds that a phase may take; null: no limit. */
  readonly maxExecutionSeconds: number | null;
  readonly submissionFailures: number;
  readonly resubmissions: number;
  readonly raw: string;
  readonly jobStatus: string;
}

interface Row {
  readonly id: number;
  readonly status: Status;
  readonly feed_id: number;
  readonly previous_id: number | null;
  readonly owner_id: number;
  readonly username: string;
  readonly email: string;
  readonly is_administrator: boolean;
  readonly plugin_id: number;
  readonly plugin_name: string;
  readonly plugin_type: PluginType;
  readonly dock_image: string;
  readonly execshell: string;
  readonly selfpath: string;
  readonly selfexec: string;
  readonly compute_resource_id: number | null;
  readonly compute_url: string;
  readonly compute_requires_copy_job: boolean;
  readonly compute_requires_upload_job: boolean;
  readonly max_job_exec_seconds: number | null;
  readonly job_id_prefix: string;
  readonly output_folder_id: number | null;
  readonly output_path: string | null;
  readonly number_of_workers: number;
  readonly cpu_limit: number;
  readonly memory_limit: number;
  readonly gpu_limit: number;
  readonly admitted: boolean;
  readonly phase_seconds: number | null;
  readonly submission_failures: number;
  readonly resubmissions: number;
  readonly raw: string;
  readonly job_status: string;
}

/** null when there is no such instance (any more). */
export async function loadInstance(database: Queries, id: number): Promise<Instance | null> {
  const { rows } = await sql<Row>`
    select i.id, i.status, i.feed_id, i.previous_id, i.owner_id, a.username, a.email, a.is_administrator,
      i.plugin_id, m.name as plugin_name, m.type as plugin_type, p.dock_image, p.execshell, p.selfpath, p.selfexec,
      i.compute_resource_id, c.compute_url, c.compute_requires_copy_job, c.compute_requires_upload_job,
      c.max_job_exec_seconds, s.job_id_prefix, i.output_folder_id, f.path as output_path,
      i.number_of_workers, i.cpu_limit, i.memory_limit, i.gpu_limit, i.admitted,
      extract(epoch from now() - i.phase_started_at)::float8 as phase_seconds,
      i.submission_failures, i.resubmissions, i.raw, i.job_status
    from plugin_instance i
      join account a on a.id = i.owner_id
      join plugin p on p.id = i.plugin_id
      join plugin_meta m on m.id = p.meta_id
      cross join chris_instance s
      left join compute_resource c on c.id = i.compute_resource_id
      left join folder f on f.id = i.output_folder_id
    where i.id = ${id}`.execute(database);
  const [row] = rows;
  return row === undefined ? null : instanceOf(row);
}

function instanceOf(row: Row): Instance {
  const limit = row.max_job_exec_seconds;
  return {
    id: row.id,
    status: row.status,
    feedId: row.feed_id,
    previousId: row.previous_id,
    owner: { id: row.owner_id, username: row.username, email: row.email, isAdministrator: row.is_administrator },
    plugin: {
      id: row.plugin_id,
      name: row.plugin_name,
      type: row.plugin_type,
      image: row.dock_image,
      execshell: row.execshell,
      selfpath: row.selfpath,
      selfexec: row.selfexec,
    },
    resource:
      row.compute_resource_id === null
        ? null
        : {
            id: row.compute_resource_id,
            url: row.compute_url,
            requiresCopyJob: row.compute_requires_copy_job,
            requiresUploadJob: row.compute_requires_upload_job,
          },
    jobId: `${row.job_id_prefix}${row.id}`,
    jobIdPrefix: row.job_id_prefix,
    output:
      row.output_folder_id === null || row.output_path === null
        ? null
        : { folderId: row.output_folder_id, path: row.output_path },
    limits: {
      numberOfWorkers: row.number_of_workers,
      cpuMillicores: row.cpu_limit,
      memoryMebibytes: row.memory_limit,
      gpus: row.gpu_limit,
    },
    admitted: row.admitted,
    phaseSeconds: row.phase_seconds,
    maxExecutionSeconds: limit === null || limit < 0 ? null : limit,
    submissionFailures: row.submission_failures,
    resubmissions: row.resubmissions,
    raw: row.raw,
    jobStatus: row.job_status,
  };
}
