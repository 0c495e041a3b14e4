/** Paths of the tree as users write them: cleaning and the names that follow from them. Pure functions. */
import { createHash, randomInt } from 'node:crypto';
import { extname } from 'node:path/posix';
import { type InvalidFields, invalid } from '../hypermedia/errors.ts';
import { COMPONENT_LIMIT_BYTES, componentProblem } from '../storage/paths.ts';

/** Longest path that the wire knows, in characters. */
export const PATH_LIMIT_CHARACTERS = 1024;

export const LINK_ENDING = '.chrislink';

const SUFFIX_CHARACTERS = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789';
const SUFFIX_LENGTH = 7;

/**
 * A path that a user gave, below anybody's home: trimmed of white space, then of slashes at both ends.
 * @param field to name in the refusal
 * @throws {InvalidFields} for a comma, an empty, `.` or `..` component, a control character, a component over 255 bytes, a
 *   path over 1024 characters, or one that does not start with `home/`
 */
export function cleanPath(text: string, field: string): string {
  const path = cleanTreePath(text, field);
  if (!path.startsWith('home/'))
    throw invalid(field, 'The path must start with "home/", such as home/USER/uploads/NAME.');
  return path;
}

/** As `cleanPath`, anywhere in the tree below the root. */
export function cleanTreePath(text: string, field: string): string {
  // Before anything that could be slow on a huge text; twice as many code units as characters, and some to trim.
  if (text.length > 4 * PATH_LIMIT_CHARACTERS) throw tooLong(field);
  const path = text.trim().replace(/^\/+|\/+$/g, '');
  if (path === '') throw invalid(field, 'The path may not be blank.');
  if (path.includes(',')) throw invalid(field, 'The path may not contain a comma: commas separate paths.');
  if ([...path].length > PATH_LIMIT_CHARACTERS) throw tooLong(field);
  for (const component of path.split('/')) {
    const problem = componentProblem(component);
    if (problem !== null) throw invalid(field, `The path is refused: ${problem}.`);
  }
  return path;
}

/**
 * The name under which an upload is stored: trimmed, spaces as `_`, and of the rest only letters, digits, `_`, `-` and `.`.
 * @throws {InvalidFields} when nothing is left, or more than 255 bytes
 */
export function cleanFileName(name: string, field: string): string {
  const cleaned = name
    .trim()
    .replaceAll(' ', '_')
    .replace(/[^\p{L}\p{N}_.-]/gu, '');
  const problem = componentProblem(cleaned);
  if (cleaned === '') throw invalid(field, 'The file name has no letter, digit, "_", "-" or "." in it.');
  if (problem !== null) throw invalid(field, `The file name is refused: ${problem}.`);
  return cleaned;
}

/** Another name for a file whose name is taken: `a.txt` becomes `a_Xy12abC.txt`. Shortened where it would be too long. */
export function withRandomSuffix(name: string): string {
  const extension = extname(name);
  const random = Array.from({ length: SUFFIX_LENGTH }, () => SUFFIX_CHARACTERS[randomInt(SUFFIX_CHARACTERS.length)]);
  const ending = `_${random.join('')}${extension}`;
  const limit = COMPONENT_LIMIT_BYTES - Buffer.byteLength(ending);
  if (limit < 1) return withRandomSuffix(shortened(name, COMPONENT_LIMIT_BYTES / 2));
  return shortened(name.slice(0, name.length - extension.length), limit) + ending;
}

/** Name of the link file that points to a path: every `/` as `_`, then `.chrislink`. */
export function linkFileName(path: string): string {
  return flatName(path, LINK_ENDING);
}

/** Name of the folder that takes the place of a link file in a job's input. */
export function linkFolderName(path: string): string {
  return flatName(path, '');
}

/** Whether a path is one that the server gives to the folder of a feed: `home/USER/feeds/feed_NUMBER`. */
export function isFeedFolderPath(path: string): boolean {
  return /^home\/[^/]+\/feeds\/feed_[0-9]+$/.test(path);
}

/** A path's last component. */
export function nameOf(path: string): string {
  return path.slice(path.lastIndexOf('/') + 1);
}

/** A path without its last component; the root, ``, for a single one. */
export function folderOf(path: string): string {
  return path.slice(0, Math.max(0, path.lastIndexOf('/')));
}

/** The path of a name in a folder. */
export function joinPath(folder: string, name: string): string {
  return folder === '' ? name : `${folder}/${name}`;
}

function tooLong(field: string): InvalidFields {
  return invalid(field, `The path is longer than ${PATH_LIMIT_CHARACTERS} characters.`);
}

/** A long path keeps its start, and a hash of the whole tells it from others with that start. */
function flatName(path: string, ending: string): string {
  const flat = path.replaceAll('/', '_');
  if (Buffer.byteLength(flat + ending) <= COMPONENT_LIMIT_BYTES) return flat + ending;
  const hashed = `_${createHash('sha256').update(path).digest('hex').slice(0, 16)}${ending}`;
  return shortened(flat, COMPONENT_LIMIT_BYTES - hashed.length) + hashed;
}

/** As many whole characters from the start as fit. */
function shortened(text: string, limitBytes: number): string {
  let bytes = 0;
  let kept = '';
  for (const character of text) {
    bytes += Buffer.byteLength(character);
    if (bytes > limitBytes) break;
    kept += character;
  }
  return kept;
}
