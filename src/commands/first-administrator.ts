/** The account that the first start makes, and its password, which is shown once and kept for its owner. */

import { randomBytes, randomUUID } from 'node:crypto';
import { link, open, readFile, unlink } from 'node:fs/promises';
import { join } from 'node:path';
import { type Administrator, ensureAdministrator } from '../accounts/rules.ts';
import type { Services } from '../services.ts';

export interface FirstAdministrator extends Administrator {
  /** Where a generated password is kept. */
  readonly file: string;
}

/** @returns what to tell the operator; `password` is null unless it was generated now */
export async function prepareAdministrator(services: Services): Promise<FirstAdministrator> {
  const { config } = services;
  const file = join(config.data, 'admin-password');
  if (config.adminPassword !== null || (await hasAdministrator(services))) {
    return { ...(await ensureAdministrator(services)), password: null, file };
  }
  // Kept before it counts: a crash in between must not leave an account whose password nobody knows.
  const password = await keepPassword(file);
  const made = await ensureAdministrator({ ...services, config: { ...config, adminPassword: password } });
  return { ...made, password: made.created ? password : null, file };
}

/** Shows a generated password, this once. */
export function tellPassword({ username, password, file }: FirstAdministrator): void {
  if (password === null) return;
  process.stderr.write(
    `The administrator is "${username}" with the password ${password}\n(it is shown this once, and kept in ${file})\n`,
  );
}

async function hasAdministrator({ database }: Services): Promise<boolean> {
  const found = await database
    .selectFrom('account')
    .select('id')
    .where('is_administrator', '=', true)
    .limit(1)
    .executeTakeFirst();
  return found !== undefined;
}

/** The password in the file, which is made whole or not at all. */
async function keepPassword(file: string): Promise<string> {
  const draft = `${file}.${randomUUID()}`;
  const handle = await open(draft, 'wx', 0o600);
  try {
    await handle.writeFile(`${randomBytes(15).toString('base64url')}\n`);
    await handle.sync();
  } finally {
    await handle.close();
  }
  try {
    await link(draft, file);
  } catch (error) {
    // from a start that did not come further
    if (!(error instanceof Error && 'code' in error && error.code === 'EEXIST')) throw error;
  } finally {
    await unlink(draft);
  }
  return (await readFile(file, 'utf8')).trim();
}
