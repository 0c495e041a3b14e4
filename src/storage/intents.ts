/**
 * Changes of storage that belong to a change of rows: either both happen or neither, whatever dies in between.
 *
 * A file system has no transactions, so what is going to happen is written down first (table `storage_intent`):
 *
 *   1. The intents are committed on their own: kind, from, to, and the process that does the work.
 *   2. One transaction locks its intents, changes the rows, then changes storage, then deletes its intents, and commits.
 *      Storage comes last: by then the rows are locked and known to be right, so nobody else touches these paths meanwhile.
 *   3. What can no longer be undone follows the commit: incoming names are forgotten, removed things are deleted for good.
 *
 * So an intent that is still there, and that no transaction holds, belongs to a transaction that did not commit; an intent that
 * is gone belongs to one that did. That is all that settling looks at; it never asks what the dead process had got to:
 *
 *   intent   from, to             the process died …                   is settled by
 *   put      incoming key, path   before 2: the path is free           forgetting the incoming file
 *                                 in 2: perhaps bytes at the path      removing the path if it is the same bytes as the
 *                                                                      incoming file (its inode); never what others put there
 *                                 after the commit: no intent          nothing; the incoming name is a leftover
 *   move     path, path           before 2 or early in 2               nothing to do: the move back finds nothing
 *                                 late in 2: perhaps moved             moving back
 *                                 after the commit: no intent          nothing
 *   remove   path, trash path     before or in 2: perhaps in the trash moving back
 *            trash path, null     after the commit                     removing it, also half-removed
 *
 * Removal goes by way of the trash because it can be undone until the commit, takes one rename whatever the size of a folder,
 * and leaves the path free for new bytes at once, which a late removal could otherwise hit.
 *
 * A process that is thought dead but lives: settling waits for the lock of a transaction that works, and a transaction that
 * finds its intents settled fails. Settling can itself die at any point and be repeated.
 */
import { randomUUID } from 'node:crypto';
import type { Database, Transaction } from '../database/database.ts';
import type { Log } from '../log.ts';
import { AlreadyThere } from './errors.ts';
import { TRASH } from './paths.ts';
import type { IncomingFile, Storage } from './storage.ts';

/** A change of storage; `path`, `from` and `to` are storage paths. */
export type StorageChange =
  | {
      readonly kind: 'put';
      readonly incoming: IncomingFile;
      readonly path: string;
      /** Whether the incoming file stays when nothing is changed, so that the caller can try another path. Default: it is forgotten. */
      readonly keepIfRefused?: boolean;
    }
  | { readonly kind: 'move'; readonly from: string; readonly to: string }
  | { readonly kind: 'remove'; readonly path: string };

export interface StorageContext {
  readonly database: Database;
  readonly storage: Storage;
  /** This process in the table `server_process`. */
  readonly process: { readonly id: number };
  readonly log: Pick<Log, 'error'>;
}

interface Intent {
  readonly id: number;
  readonly kind: string;
  readonly from_path: string | null;
  readonly to_path: string | null;
}

/**
 * Changes rows and storage together.
 * @param changes done in this order after `work`
 * @param work changes the rows; should lock those that guard the paths
 * @throws {AlreadyThere} when something lies where bytes should go, and whatever `work` throws; then nothing was changed
 */
export async function changeStorage<T>(
  context: StorageContext,
  changes: readonly StorageChange[],
  work: (transaction: Transaction) => Promise<T>,
): Promise<T> {
  const { database, storage } = context;
  await requireFreeTargets(storage, changes);
  const intents = await note(context, changes);
  let isDone = false;
  try {
    const answer = await database.transaction().execute(async (transaction) => {
      await claim(transaction, intents);
      const result = await work(transaction);
      for (const change of changes) await carryOut(storage, change, intents.get(change));
      await conclude(transaction, intents);
      return result;
    });
    isDone = true;
    return answer;
  } finally {
    const isSettled = await settleOwn(context, intents);
    for (const change of changes) {
      if (change.kind !== 'put') continue;
      // By an incoming file its bytes are known, which whoever takes over from this process has to take back.
      if (!isSettled) storage.retain(change.incoming);
      if (isDone || !change.keepIfRefused) await storage.discard(change.incoming);
    }
  }
}

/**
 * Settles what processes that have died left: puts and moves are undone, committed removals are finished. What cannot be settled
 * is logged and tried again at the next call.
 * @returns how many were settled
 */
export async function recoverIntents(
  { database, storage, log }: Omit<StorageContext, 'process'>,
  deadProcessIds: readonly number[],
): Promise<number> {
  const abandoned = await database
    .selectFrom('storage_intent')
    .select('id')
    .where(({ eb, or, not, exists, selectFrom }) =>
      or([
        eb('process_id', 'in', [0, ...deadProcessIds]),
        not(
          exists(selectFrom('server_process as p').select('p.id').whereRef('p.id', '=', 'storage_intent.process_id')),
        ),
      ]),
    )
    .orderBy('id', 'desc')
    .execute();
  let settled = 0;
  for (const { id } of abandoned) {
    try {
      const incomingKey = await settle(database, storage, id);
      if (incomingKey !== null) await storage.discard({ key: incomingKey });
      settled += 1;
    } catch (error) {
      log.error({ err: error, intent: id }, 'a change of storage that was interrupted could not be settled');
    }
  }
  return settled;
}

/** Intents by the change they stand for. */
type Noted = ReadonlyMap<StorageChange, Intent>;

async function requireFreeTargets(storage: Storage, changes: readonly StorageChange[]): Promise<void> {
  for (const change of changes) {
    if (change.kind === 'move' && (await storage.exists(change.to))) throw new AlreadyThere(change.to);
  }
}

async function note({ database, process }: StorageContext, changes: readonly StorageChange[]): Promise<Noted> {
  if (changes.length === 0) return new Map();
  const rows = await database
    .insertInto('storage_intent')
    .values(changes.map((change) => ({ kind: change.kind, process_id: process.id, ...pathsOf(change) })))
    .returning(['id', 'kind', 'from_path', 'to_path'])
    .execute();
  rows.sort((a, b) => a.id - b.id);
  return new Map(changes.flatMap((change, index) => (rows[index] ? [[change, rows[index]]] : [])));
}

function pathsOf(change: StorageChange): Pick<Intent, 'from_path' | 'to_path'> {
  if (change.kind === 'put') return { from_path: change.incoming.key, to_path: change.path };
  if (change.kind === 'move') return { from_path: change.from, to_path: change.to };
  return { from_path: change.path, to_path: `${TRASH}/${randomUUID()}` };
}

async function claim(transaction: Transaction, intents: Noted): Promise<void> {
  if (intents.size === 0) return;
  const locked = await transaction
    .selectFrom('storage_intent')
    .select('id')
    .where('id', 'in', idsOf(intents))
    .orderBy('id')
    .forUpdate()
    .execute();
  if (locked.length < intents.size) {
    throw new Error('another process took this one for dead and has undone the change of storage that it had begun');
  }
}

async function carryOut(storage: Storage, change: StorageChange, intent: Intent | undefined): Promise<void> {
  if (change.kind === 'put') await storage.placeTentatively(change.incoming, change.path);
  else if (change.kind === 'move') await storage.move(change.from, change.to);
  else if (intent?.to_path) await storage.move(change.path, intent.to_path);
}

/** What the commit says: puts and moves are done, removed things may be deleted for good. */
async function conclude(transaction: Transaction, intents: Noted): Promise<void> {
  if (intents.size === 0) return;
  await transaction
    .updateTable('storage_intent')
    .set(({ ref }) => ({ from_path: ref('to_path'), to_path: null }))
    .where('id', 'in', idsOf(intents))
    .where('kind', '=', 'remove')
    .execute();
  await transaction
    .deleteFrom('storage_intent')
    .where('id', 'in', idsOf(intents))
    .where('kind', '!=', 'remove')
    .execute();
}

/** After the end of a transaction, however it ended. What fails here is left to whoever takes over from this process. */
async function settleOwn({ database, storage, log }: StorageContext, intents: Noted): Promise<boolean> {
  try {
    for (const id of idsOf(intents).reverse()) await settle(database, storage, id);
    return true;
  } catch (error) {
    log.error({ err: error }, 'a change of storage could not be concluded; it will be when this process has ended');
    return false;
  }
}

/** Ends an intent that no transaction holds any more. Answers the key of the incoming file that was not put, if any. */
async function settle(database: Database, storage: Storage, id: number): Promise<string | null> {
  const intent = await database.transaction().execute(async (transaction) => {
    const found = await transaction
      .selectFrom('storage_intent')
      .select(['id', 'kind', 'from_path', 'to_path'])
      .where('id', '=', id)
      .forUpdate()
      .executeTakeFirst();
    if (found === undefined || found.to_path === null) return found;
    await undo(transaction, storage, found);
    await transaction.deleteFrom('storage_intent').where('id', '=', id).execute();
    return found;
  });
  if (intent === undefined || intent.from_path === null) return null;
  if (intent.to_path !== null) return intent.kind === 'put' ? intent.from_path : null;
  // Outside of a transaction: it may take long, and it may be done twice.
  await storage.remove(intent.from_path);
  await database.deleteFrom('storage_intent').where('id', '=', id).execute();
  return null;
}

async function undo(transaction: Transaction, storage: Storage, intent: Intent): Promise<void> {
  const { kind, from_path: from, to_path: to } = intent;
  if (from === null || to === null) throw new Error(`the storage intent ${intent.id} has lost its paths`);
  if (kind !== 'put') return moveBack(storage, to, from);
  // Bytes that have a row, whoever made it, stay.
  if (!(await hasRow(transaction, to))) await storage.takeBack(from, to);
}

/** The path may have come into being again meanwhile, by an upload into a folder that was half moved: then both are merged. */
async function moveBack(storage: Storage, from: string, to: string): Promise<void> {
  try {
    await storage.move(from, to);
  } catch (error) {
    if (!(error instanceof AlreadyThere) || (await storage.size(from)) !== null) throw error;
    for await (const file of storage.list(from)) await storage.move(file.path, to + file.path.slice(from.length));
    await storage.remove(from);
  }
}

async function hasRow(transaction: Transaction, path: string): Promise<boolean> {
  const slash = path.lastIndexOf('/');
  const row = await transaction
    .selectFrom('file')
    .innerJoin('folder', 'folder.id', 'file.folder_id')
    .select('file.id')
    .where('folder.path', '=', path.slice(0, Math.max(slash, 0)))
    .where('file.name', '=', path.slice(slash + 1))
    .executeTakeFirst();
  return row !== undefined;
}

function idsOf(intents: Noted): number[] {
  return [...intents.values()].map((intent) => intent.id);
}
