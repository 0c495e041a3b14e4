/**
 * Who may see and change folders, files and link files (`files.md` section 2).
 *
 * Terminology
 *   effective access list   an object's own, else that of the nearest folder above it that has one; the root has one
 *   reader, writer          has an entry in the effective list, `r` or `w`, directly or through a group
 *
 * Public means readable. Administrators may read and change everything, but writing INTO a folder takes ownership or `w`, of
 * administrators too: nobody's home fills up with what others put there.
 */
import { type RawBuilder, sql } from 'kysely';
import type { CallerSql, Condition, Rule } from './caller.ts';

/** The effective access list of the objects of one kind: from an alias to an SQL expression of its id. */
type EffectiveList = (alias: string) => RawBuilder<unknown>;

const ofFolder: EffectiveList = (alias) => sql`folder_acl(${sql.ref(`${alias}.id`)})`;
const ofFile: EffectiveList = (alias) =>
  sql`coalesce(${sql.ref(`${alias}.acl_id`)}, folder_acl(${sql.ref(`${alias}.folder_id`)}))`;

/** Entries of a list that speak of the caller. */
function isNamed(caller: CallerSql, level: 'r' | 'w'): Condition {
  const enough = level === 'r' ? sql`true` : sql`entry.level = 'w'`;
  return sql`exists (select from acl_entry entry where entry.acl_id = list.id and ${enough} and (entry.account_id = ${caller.id}
    or entry.group_id in (select m.group_id from membership m where m.account_id = ${caller.id})))`;
}

/** `offset 0` keeps the list from being looked up again for each row that it is compared with. */
function inList(listId: RawBuilder<unknown>, condition: Condition): Condition {
  return sql`exists (select from (select ${listId} as id offset 0) effective join acl list on list.id = effective.id where ${condition})`;
}

/** Whoever a list lets read. */
function readByList(listId: RawBuilder<unknown>, caller: CallerSql): Condition {
  return inList(listId, isStranger(caller) ? sql`list.public` : sql`(list.public or ${isNamed(caller, 'r')})`);
}

/** Anonymous callers, and running programs: these get their input from the server and reach no files of their owner. */
function isStranger(caller: CallerSql): boolean {
  return caller.role === 'anonymous' || caller.role === 'job';
}

function isOwner(alias: string, caller: CallerSql): Condition {
  return sql`${sql.ref(`${alias}.owner_id`)} = ${caller.id}`;
}

const own: Rule = (alias, caller) => {
  if (caller.role === 'administrator') return sql`true`;
  return isStranger(caller) ? sql`false` : isOwner(alias, caller);
};

function reading(listOf: EffectiveList): Rule {
  return (alias, caller) => {
    if (caller.role === 'administrator') return sql`true`;
    const byList = readByList(listOf(alias), caller);
    return isStranger(caller) ? byList : sql`(${isOwner(alias, caller)} or ${byList})`;
  };
}

/** Owners and those with an entry of at least a level; not those for whom an object is merely public. */
function named(listOf: EffectiveList, level: 'r' | 'w'): Rule {
  return (alias, caller) => {
    if (isStranger(caller)) return sql`false`;
    return sql`(${isOwner(alias, caller)} or ${inList(listOf(alias), isNamed(caller, level))})`;
  };
}

function orAdministrator(rule: Rule): Rule {
  return (alias, caller) => (caller.role === 'administrator' ? sql`true` : rule(alias, caller));
}

/** Folders (a table with the columns of `folder`): reading them and listing what is in them. */
export const readFolder: Rule = reading(ofFolder);
/** Moving and deleting. */
export const writeFolder: Rule = orAdministrator(named(ofFolder, 'w'));
/** Publishing and sharing. */
export const ownFolder: Rule = own;
/** Seeing with whom it is shared. */
export const knowFolderAccess: Rule = orAdministrator(named(ofFolder, 'r'));
/** Putting something into it. */
export const writeIntoFolder: Rule = named(ofFolder, 'w');

/** Files (a table with the columns of `file`). */
export const readFile: Rule = reading(ofFile);
export const writeFile: Rule = orAdministrator(named(ofFile, 'w'));
export const ownFile: Rule = own;
export const knowFileAccess: Rule = orAdministrator(named(ofFile, 'r'));

/** Link files (a table with the columns of `link_file`): as files; what they point to has rules of its own. */
export const readLinkFile: Rule = readFile;
export const writeLinkFile: Rule = writeFile;
export const ownLinkFile: Rule = own;
export const knowLinkFileAccess: Rule = knowFileAccess;

/**
 * What a listing of one folder shows of its files or link files: the same as `readFile`, but what holds for the whole folder is
 * asked once, however many files there are.
 * @param folderId of the folder whose files are listed
 */
export function readInFolder(alias: string, caller: CallerSql, folderId: unknown): Condition {
  if (caller.role === 'administrator') return sql`true`;
  const ownList = sql.ref(`${alias}.acl_id`);
  const asFolder = readByList(sql`folder_acl(${folderId})`, caller);
  const byRule = sql<boolean>`case when ${ownList} is null then ${asFolder} else ${readByList(ownList, caller)} end`;
  return isStranger(caller) ? byRule : sql`(${isOwner(alias, caller)} or ${byRule})`;
}
