/**
 * The files of a job's input, from the rows of the tree.
 *
 * Terminology
 *   staged layout   what a program sees (`compute.md` section 5): each input path without itself, merged into one folder; a link
 *                   file is replaced by a folder, named like the path it points to with `_` for `/`, of what it leads to
 *   zipped layout   what out-of-network services are sent: link files themselves, and what they lead to under its whole path
 *   hop             going from a link file to what it points to: allowed only where the job's owner may read that
 *
 * Of several files for one place the first stays. Places are remembered only where that can happen: with several paths or links.
 */
import { sql } from 'kysely';
import type { InputFile } from '../compute/engine.ts';
import type { SubmissionFailed } from '../compute/errors.ts';
import {
  type Entry,
  type FileEntry,
  findEntry,
  type LinkEntry,
  type Reading,
  refused,
  walkEntry,
} from './input-rows.ts';
import { folderOf, joinPath, linkFolderName, nameOf } from './paths.ts';

/** `caller` is the owner of the job. */
export interface InputWalk extends Reading {
  readonly inputPaths: readonly string[];
  /** Output folder of the job: nothing may lead to it or above it. */
  readonly outputPath: string;
}

/** How many links may lead from one to the next, and how often they may lead to the same paths again: beyond, they mean harm. */
const MOST_HOPS = 32;
const MOST_REPEATS = 1000;

/** @throws {SubmissionFailed} CODE17 when something leads to what the owner may not read, or to the output folder */
export async function* stagedInputs(walk: InputWalk): AsyncGenerator<InputFile> {
  yield* withoutRepeats(walk, (count) => staged(walk, count));
}

/** Link files come with `storagePath` null and the path they point to as content. @throws as `stagedInputs` */
export async function* zippedInputs(walk: InputWalk): AsyncGenerator<InputFile> {
  yield* withoutRepeats(walk, (count) => zipped(walk, count));
}

/** Told where each link that is followed leads. */
type Count = (target: string) => void;

async function* staged(walk: InputWalk, count: Count): AsyncGenerator<InputFile> {
  for (const path of walk.inputPaths) {
    const entry = await readableEntry(walk, path);
    if (entry !== null) yield* stageEntry(walk, entry, '', [path], count);
  }
}

/** @param place of the entry's files in the input, `` for the top @param chain paths that led here, to end at cycles */
async function* stageEntry(
  walk: InputWalk,
  entry: Entry,
  place: string,
  chain: readonly string[],
  count: Count,
): AsyncGenerator<InputFile> {
  for await (const found of walkEntry(walk, entry)) {
    const relativePath = joinPath(place, relativeTo(entry, found.path));
    if (found.kind === 'file') yield inputFile(found, relativePath);
    else yield* stageLink(walk, found, folderOf(relativePath), chain, count);
  }
}

async function* stageLink(
  walk: InputWalk,
  link: LinkEntry,
  folder: string,
  chain: readonly string[],
  count: Count,
): AsyncGenerator<InputFile> {
  const target = await follow(walk, link, chain, count);
  if (target === null) return;
  // A single file lies in a folder named like its own, as links to several files of one folder do.
  const source = target.kind === 'folder' ? target.path : folderOf(target.path);
  yield* stageEntry(walk, target, joinPath(folder, linkFolderName(source)), [...chain, target.path], count);
}

async function* zipped(walk: InputWalk, count: Count): AsyncGenerator<InputFile> {
  const visited: string[] = [];
  for (const path of walk.inputPaths) {
    const entry = await readableEntry(walk, path);
    if (entry !== null)
      yield* zipEntry(walk, entry, (file) => relativeTo(entry, file), { chain: [path], visited, count });
  }
}

interface ZipWalk {
  readonly chain: readonly string[];
  /** What links have led to already. */
  readonly visited: string[];
  readonly count: Count;
}

async function* zipEntry(
  walk: InputWalk,
  entry: Entry,
  placeOf: (path: string) => string,
  { chain, visited, count }: ZipWalk,
): AsyncGenerator<InputFile> {
  for await (const found of walkEntry(walk, entry)) {
    if (found.kind === 'file') {
      yield inputFile(found, placeOf(found.path));
      continue;
    }
    yield linkContent(found, placeOf(found.path));
    const target = await follow(walk, found, [], count);
    if (target === null || visited.some((path) => isAtOrBelow(target.path, path))) continue;
    if (chain.length > MOST_HOPS) throw tooManyLinks();
    visited.push(target.path);
    yield* zipEntry(walk, target, (path) => path, { chain: [...chain, target.path], visited, count });
  }
}

/** What a link leads to; null when nothing is there, or when it leads back to where it came from. */
async function follow(walk: InputWalk, link: LinkEntry, chain: readonly string[], count: Count): Promise<Entry | null> {
  const { target } = link;
  count(target);
  const problem = hopProblem(target, walk.outputPath);
  if (problem !== null) throw refused(`the link file "${link.path}" points to "${target}", which ${problem}`);
  if (chain.includes(target)) return null;
  if (chain.length > MOST_HOPS) throw tooManyLinks();
  return readableEntry(walk, target);
}

/** The rule for paths that are given to jobs (`files.md` section 8), and that outputs are no input of their own. */
function hopProblem(target: string, outputPath: string): string | null {
  const [top = '', second, third, ...rest] = target.split('/');
  if (second === undefined || !['home', 'SERVICES', 'PIPELINES'].includes(top)) return 'is no place for data';
  if (top === 'home' && (third === undefined || (third === 'feeds' && rest.length === 0))) return 'holds too much';
  return isAtOrBelow(outputPath, target) ? 'is the output folder of the job or above it' : null;
}

/** null when nothing is there (any more) */
async function readableEntry(walk: InputWalk, path: string): Promise<Entry | null> {
  if (isAtOrBelow(walk.outputPath, path))
    throw refused(`the input "${path}" is the output folder of the job or above it`);
  return findEntry(walk, path);
}

function inputFile(file: FileEntry, relativePath: string): InputFile {
  return { relativePath, storagePath: file.storagePath, sizeBytes: file.sizeBytes };
}

function linkContent({ target }: LinkEntry, relativePath: string): InputFile {
  return { relativePath, storagePath: null, content: target, sizeBytes: Buffer.byteLength(target) };
}

/** Path below the entry; for an entry that is a single file, its name. */
function relativeTo(entry: Entry, path: string): string {
  return entry.kind === 'folder' ? path.slice(entry.path.length + 1) : nameOf(path);
}

function isAtOrBelow(path: string, above: string): boolean {
  return path === above || path.startsWith(`${above}/`);
}

async function* withoutRepeats(
  walk: InputWalk,
  inputs: (count: Count) => AsyncGenerator<InputFile>,
): AsyncGenerator<InputFile> {
  const followed = new Set<string>();
  let repeats = 0;
  const count = (target: string) => {
    if (followed.has(target)) repeats += 1;
    followed.add(target);
    if (repeats > MOST_REPEATS) throw tooManyLinks();
  };
  const seen = (await canRepeat(walk)) ? new Set<string>() : null;
  for await (const input of inputs(count)) {
    if (seen?.has(input.relativePath)) continue;
    seen?.add(input.relativePath);
    yield input;
  }
}

/** A single folder without link files has every name once. */
async function canRepeat({ database, inputPaths }: InputWalk): Promise<boolean> {
  const [path, ...others] = inputPaths;
  if (path === undefined || others.length > 0) return others.length > 0;
  const { rows } = await sql<{ found: boolean }>`
    select exists (select from folder d join link_file l on l.folder_id = d.id
      where d.path = ${path} or (d.path > ${`${path}/`} and d.path < ${`${path}0`}))
    or not exists (select from folder where path = ${path}) as found`.execute(database);
  return rows[0]?.found ?? true;
}

function tooManyLinks(): SubmissionFailed {
  return refused(
    `the link files of the input lead on to others more than ${MOST_HOPS} times, or more than ${MOST_REPEATS} times to the same`,
  );
}
