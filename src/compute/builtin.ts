/**
 * Plugins without a program: what they do (links to chosen folders, copies of parents' files) the server does itself when
 * their outputs are registered. So a job has ended well as soon as it is submitted.
 */
import type { CollectedFiles, Engine, EngineDescription, Job, JobState, Phase, Watch } from './engine.ts';
import { SubmissionFailed } from './errors.ts';
import { programName } from './image-name.ts';

const BUILTIN_PLUGINS: ReadonlySet<string> = new Set(['pl-dircopy', 'pl-tsdircopy', 'pl-topologicalcopy']);

export class BuiltinEngine implements Engine {
  async describe(): Promise<EngineDescription> {
    return { inNetwork: true, requiresCopyJob: false, requiresUploadJob: false };
  }

  async submit(_phase: Phase, job: Job): Promise<JobState> {
    const state = await this.inspect(_phase, job);
    if (state) return state;
    throw new SubmissionFailed(
      `the server itself runs ${[...BUILTIN_PLUGINS].join(', ')} only, not image "${job.image}"; choose another compute resource`,
      false,
    );
  }

  async inspect(_phase: Phase, job: Job): Promise<JobState | null> {
    if (!BUILTIN_PLUGINS.has(programName(job.image))) return null;
    return {
      status: 'finishedSuccessfully',
      message: 'done by the server',
      logs: '',
      timestamp: new Date().toISOString(),
      image: job.image,
      command: '',
    };
  }

  watch(_phase: Phase, _job: Job, changed: () => void): Watch {
    const timer = setImmediate(changed);
    return { stop: () => clearImmediate(timer) };
  }

  async collect(): Promise<CollectedFiles> {
    return [];
  }

  async cancel(): Promise<void> {}

  async remove(): Promise<void> {}

  async close(): Promise<void> {}
}
