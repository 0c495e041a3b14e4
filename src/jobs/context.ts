/** What the steps share. */
import type { Services } from '../services.ts';
import type { Engines } from './engines.ts';
import type { Watchers } from './watchers.ts';

export interface JobContext {
  readonly services: Services;
  readonly engines: Engines;
  readonly watchers: Watchers;
}

/** Where a step leaves an instance: to be gone on with in the same job, or at rest until something happens. */
export type Outcome = 'go on' | 'rest';
