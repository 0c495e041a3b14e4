/** The statuses of a plugin instance and what leads from one to the next . */

export const STATUSES = [
  'created',
  'waiting',
  'copying',
  'scheduled',
  'started',
  'uploading',
  'registeringFiles',
  'finishedSuccessfully',
  'finishedWithError',
  'cancelled',
] as const;

export type Status = (typeof STATUSES)[number];

export type FinalStatus = Extract<Status, 'finishedSuccessfully' | 'finishedWithError' | 'cancelled'>;

/** What may follow each status. */
export const NEXT: Readonly<Record<Status, readonly Status[]>> = {
  created: ['waiting', 'copying', 'scheduled', 'cancelled'],
  waiting: ['copying', 'scheduled', 'cancelled'],
  copying: ['scheduled', 'cancelled'],
  scheduled: ['started', 'cancelled'],
  started: ['uploading', 'registeringFiles', 'cancelled'],
  uploading: ['registeringFiles', 'cancelled'],
  registeringFiles: ['finishedSuccessfully', 'finishedWithError', 'cancelled'],
  finishedSuccessfully: [],
  finishedWithError: [],
  cancelled: [],
};

export function isFinal(status: Status): status is FinalStatus {
  return NEXT[status].length === 0;
}

/** Whether an instance in this status ended without the outputs that a child needs. */
export function isDead(status: Status): boolean {
  return status === 'finishedWithError' || status === 'cancelled';
}

/** What becomes of an instance whose parents are in these statuses; without parents it may run. */
export function statusFromParents(
  parents: readonly Status[],
  requiresCopyJob: boolean,
): 'cancelled' | 'waiting' | 'copying' | 'scheduled' {
  if (parents.some(isDead)) return 'cancelled';
  if (!parents.every((status) => status === 'finishedSuccessfully')) return 'waiting';
  return requiresCopyJob ? 'copying' : 'scheduled';
}
