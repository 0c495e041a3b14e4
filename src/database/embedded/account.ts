/**
 * Under which user of the system PostgreSQL runs. It refuses to run as root, so root runs it in a user namespace, where it
 * sees itself as another user while its files stay root's; where that is not allowed, as the user 65534 ("nobody").
 */
import { execFile, type SpawnOptions } from 'node:child_process';
import { chown, readdir, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { DatabaseError } from '../errors.ts';
import { type Binaries, messageOf } from './binaries.ts';

const run = promisify(execFile);
const NOBODY = 65_534;
const NAMESPACE = ['--user', `--map-user=${NOBODY}`, `--map-group=${NOBODY}`];

export interface Account {
  /** Program and arguments that run the given ones under the account; the process id stays that of the program. */
  command(program: string, parameters: readonly string[]): { program: string; parameters: readonly string[] };
  readonly spawnOptions: Pick<SpawnOptions, 'uid' | 'gid' | 'env'>;
  /** To whom the files of the database belong; null: whoever we are. */
  readonly ownerId: number | null;
}

// Neither the caller's locale nor its PostgreSQL variables shall change how the server behaves.
const ENVIRONMENT = { PATH: process.env.PATH ?? '/usr/bin:/bin', LC_ALL: 'C', TZ: 'UTC' };

/** @throws {DatabaseError} when root finds no way. */
export async function chooseAccount(binaries: Binaries): Promise<Account> {
  const same: Account = {
    command: (program, parameters) => ({ program, parameters }),
    spawnOptions: { env: ENVIRONMENT },
    ownerId: null,
  };
  if (process.getuid?.() !== 0) return same;
  if (await succeeds('unshare', [...NAMESPACE, binaries.postgres, '--version'], {})) {
    return {
      ...same,
      command: (program, parameters) => ({ program: 'unshare', parameters: [...NAMESPACE, program, ...parameters] }),
      ownerId: 0,
    };
  }
  const nobody: Account = { ...same, spawnOptions: { env: ENVIRONMENT, uid: NOBODY, gid: NOBODY }, ownerId: NOBODY };
  if (await succeeds(binaries.postgres, ['--version'], { uid: NOBODY, gid: NOBODY })) return nobody;
  throw new DatabaseError(
    `PostgreSQL does not run as root, and the user ${NOBODY} cannot reach ${binaries.postgres}. Run the server as an ` +
      'ordinary user, put it in a folder that all users can enter, or set HYPERCUBE_DATABASE_URL to a PostgreSQL server.',
  );
}

/** Whether files of this user may be taken over: root's own starts leave them to root or to nobody. */
export function isOurs(userId: number): boolean {
  const own = process.getuid?.();
  return userId === own || (own === 0 && userId === NOBODY);
}

async function succeeds(program: string, parameters: readonly string[], options: { uid?: number; gid?: number }) {
  try {
    await run(program, [...parameters], { ...options, env: ENVIRONMENT });
    return true;
  } catch {
    return false;
  }
}

/**
 * Gives the files below a folder to the account if another start by root left them to a different one.
 * @throws {DatabaseError} when they are somebody else's.
 */
export async function ensureOwner(folder: string, account: Account): Promise<void> {
  const { uid } = await stat(folder);
  const wanted = account.ownerId ?? process.getuid?.();
  if (wanted === undefined || uid === wanted) return;
  if (account.ownerId === null || !isOurs(uid)) {
    throw new DatabaseError(
      `${folder} belongs to the user ${uid}; run the server as that user, or give the folder to the user ${wanted}.`,
    );
  }
  try {
    for (const name of await readdir(folder, { recursive: true })) await chown(join(folder, name), wanted, wanted);
    // last, so that an interrupted try is repeated
    await chown(folder, wanted, wanted);
  } catch (cause) {
    throw new DatabaseError(`${folder} could not be given to the user ${wanted}: ${messageOf(cause)}`, { cause });
  }
}
