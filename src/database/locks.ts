/** First keys of our advisory locks, one for each purpose; chosen once at random, so that other programs do not meet them. */
export const ADVISORY_LOCKS = {
  /** In the database `postgres` of the embedded server; second key as in `embedded.ts`. */
  embedded: 1_213_810_001,
  /** One process migrates at a time. */
  migrate: 1_213_810_002,
  /** Second key: id of the row in `server_process`. */
  process: 1_213_810_003,
} as const;
