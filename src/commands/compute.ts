/** `hypercube compute add`: registers a place where plugins run. */
import { addComputeResource } from '../plugins/compute-resources.ts';
import { CommandError } from './failure.ts';
import { askPassword } from './password.ts';
import { withServices } from './runtime.ts';

export interface ComputeOptions {
  readonly description: string;
  readonly user?: string;
  readonly maxSeconds?: string;
}

export async function addCompute(name: string, url: string, options: ComputeOptions): Promise<void> {
  const credentials = options.user === undefined ? {} : await askCredentials(options.user);
  const fields = {
    name,
    compute_url: url,
    description: options.description,
    max_job_exec_seconds: secondsOf(options.maxSeconds),
    ...credentials,
  };
  const id = await withServices((services) => addComputeResource(services, fields));
  process.stdout.write(`Registered the compute resource "${name}" with the id ${id}.\n`);
}

async function askCredentials(user: string): Promise<{ compute_user: string; compute_password: string }> {
  return { compute_user: user, compute_password: await askPassword(`Password of ${user}`) };
}

/** -1: no limit. */
function secondsOf(text: string | undefined): number {
  if (text === undefined) return -1;
  if (/^[1-9]\d{0,8}$/.test(text)) return Number(text);
  throw new CommandError(`--max-seconds is "${text}"; it should be a whole number of seconds.`);
}
