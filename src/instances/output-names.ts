/**
 * What becomes of the names that programs give their files (`instances`, section 7 of the reference's behaviour): commas go,
 * a file whose name is then blank is deleted, a folder whose name is then blank is dissolved into its parent.
 */

export type OutputAction =
  | { readonly kind: 'keep'; readonly path: string }
  | { readonly kind: 'rename'; readonly from: string; readonly path: string }
  /** `refused`: a link file, which only the server may make. */
  | { readonly kind: 'delete'; readonly from: string; readonly refused: boolean };

const LINK_SUFFIX = '.chrislink';

/**
 * What to do with each file of an output, by its path below the output folder.
 * Two files that would share a name afterwards are told apart by a number: `a,b.txt` beside `ab.txt` becomes `ab_1.txt`.
 */
export function planOutputs(paths: readonly string[]): OutputAction[] {
  const taken = new Set(paths.filter((path) => cleanPath(path) === path));
  return paths.map((from) => {
    if (from.endsWith(LINK_SUFFIX)) return { kind: 'delete', from, refused: true };
    const cleaned = cleanPath(from);
    if (cleaned === from) return { kind: 'keep', path: from };
    if (cleaned === null) return { kind: 'delete', from, refused: false };
    const path = freePath(cleaned, taken);
    taken.add(path);
    return { kind: 'rename', from, path };
  });
}

/** null when nothing is left of the file's name. */
function cleanPath(path: string): string | null {
  const parts = path.split('/').map((part) => (part.includes(',') ? part.replaceAll(',', '') : part));
  const name = parts.at(-1) ?? '';
  if (name.trim() === '') return null;
  const cleaned = parts.filter((part) => part.trim() !== '').join('/');
  // What was hidden by commas must not come to life as a link file or as a way out of the folder.
  if (cleaned.endsWith(LINK_SUFFIX) || cleaned.split('/').some((part) => part === '.' || part === '..')) return null;
  return cleaned;
}

function freePath(path: string, taken: ReadonlySet<string>): string {
  if (!taken.has(path)) return path;
  const slash = path.lastIndexOf('/');
  const dot = path.lastIndexOf('.');
  const end = dot > slash + 1 ? dot : path.length;
  for (let number = 1; ; number++) {
    const candidate = `${path.slice(0, end)}_${number}${path.slice(end)}`;
    if (!taken.has(candidate)) return candidate;
  }
}
