/** What can go wrong between the server and a compute resource. Messages are shown to users: no secrets, no stack. */

export class ComputeError extends Error {
  override readonly name: string = 'ComputeError';
}

/** Nobody answered, or the answer says "later": ask again. */
export class ServiceUnreachable extends ComputeError {
  override readonly name = 'ServiceUnreachable';
}

/** The service answered and will not work with us as configured (credentials, kind of storage). */
export class ServiceRefused extends ComputeError {
  override readonly name = 'ServiceRefused';
}

/** A job could not be started (CODE01 unless said otherwise). `retry`: the same submission may succeed later. */
export class SubmissionFailed extends ComputeError {
  override readonly name = 'SubmissionFailed';
  readonly retry: boolean;
  readonly code: string;
  constructor(message: string, retry: boolean, code = 'CODE01') {
    super(message);
    this.retry = retry;
    this.code = code;
  }
}

/** Outputs could not be brought to storage; `code` as in `instances.md` section 10. */
export class CollectionFailed extends ComputeError {
  override readonly name = 'CollectionFailed';
  readonly code: string;
  constructor(message: string, code: string) {
    super(message);
    this.code = code;
  }
}
