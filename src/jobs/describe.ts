/** The task `describeComputeResource`: a resource that had not answered when it was registered is asked again. */
import { sql } from 'kysely';
import { ComputeError } from '../compute/errors.ts';
import type { JobContext } from './context.ts';

export async function describeComputeResource(context: JobContext, computeResourceId: number): Promise<void> {
  const { database, log } = context.services;
  const engine = await context.engines.byResource(computeResourceId);
  if (engine === null) return;
  try {
    const description = await engine.describe();
    await database
      .updateTable('compute_resource')
      .set({
        compute_innetwork: description.inNetwork,
        compute_requires_copy_job: description.requiresCopyJob,
        compute_requires_upload_job: description.requiresUploadJob,
        described_at: sql<string>`now()`,
      })
      .where('id', '=', computeResourceId)
      .execute();
  } catch (error) {
    if (!(error instanceof ComputeError)) throw error;
    log.info({ computeResource: computeResourceId, reason: error.message }, 'a compute resource does not answer yet');
  }
}
