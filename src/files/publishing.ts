/** Making things public or private, and what new things inherit. */
import { sql } from 'kysely';
import type { Transaction } from '../database/database.ts';
import { beginAccessChange, ownAcl, type TreeObject } from './access-lists.ts';
import { ensureShortcut, removeShortcuts } from './shelves.ts';
import type { FolderRow } from './tree.ts';

/** What a user newly makes in somebody else's folder can be changed by that folder's owner too. @param made the topmost new object */
export async function inheritFrom(
  transaction: Transaction,
  existing: FolderRow,
  made: TreeObject,
  creatorId: number,
): Promise<void> {
  if (existing.owner_id === creatorId) return;
  const aclId = await ownAcl(transaction, made);
  await transaction
    .insertInto('acl_entry')
    .values({ acl_id: aclId, account_id: existing.owner_id, level: 'w' })
    .onConflict((conflict) => conflict.columns(['acl_id', 'account_id']).doUpdateSet({ level: 'w' }))
    .execute();
}

/** Makes an object, and everything below a folder, public or private. The value that it has already changes nothing. */
export async function setPublic(transaction: Transaction, object: TreeObject, isPublic: boolean): Promise<void> {
  const access = await beginAccessChange(transaction, object);
  if (access.isPublic === isPublic) return;
  await sql`update acl set public = ${isPublic} where public <> ${isPublic} and id in (${access.lists})`.execute(
    transaction,
  );
  if (isPublic) await ensureShortcut(transaction, 'PUBLIC', access);
  else await removeShortcuts(transaction, 'PUBLIC', access.path);
}
