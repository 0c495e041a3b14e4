/** Where the symbolic links of a finished program lead, found without following any of them on disk. */

export type LinkTarget =
  | { readonly kind: 'inside'; readonly path: string }
  /** Out of the folder: an absolute path elsewhere, or more `..` than there are folders. */
  | { readonly kind: 'outside' }
  /** To nothing, to a folder that holds the link itself, or in a circle. */
  | { readonly kind: 'nothing' };

const MAXIMUM_HOPS = 40;

export interface LinkedFolder {
  /** Text of each link by its path below the folder. */
  readonly links: ReadonlyMap<string, string>;
  /** Paths of all real files and folders below the folder. */
  readonly entries: ReadonlySet<string>;
  /** Absolute paths by which the program may have named the folder. */
  readonly names: readonly string[];
}

export function resolveLink(linkPath: string, folder: LinkedFolder): LinkTarget {
  const resolved = linkPath.split('/').slice(0, -1);
  const remaining: string[] = [];
  let next: string | undefined = folder.links.get(linkPath);
  for (let hops = 0; ; ) {
    if (next !== undefined) {
      if (++hops > MAXIMUM_HOPS) return { kind: 'nothing' };
      const relative = next.startsWith('/') ? belowFolder(next, folder.names) : next;
      if (relative === null) return { kind: 'outside' };
      if (next.startsWith('/')) resolved.length = 0;
      remaining.unshift(...relative.split('/'));
    }
    const component = remaining.shift();
    if (component === undefined) break;
    next = undefined;
    if (component === '' || component === '.') continue;
    if (component === '..') {
      if (resolved.pop() === undefined) return { kind: 'outside' };
      continue;
    }
    next = folder.links.get([...resolved, component].join('/'));
    if (next === undefined) resolved.push(component);
  }
  const path = resolved.join('/');
  const holdsTheLink = path === '' || linkPath.startsWith(`${path}/`);
  return folder.entries.has(path) && !holdsTheLink ? { kind: 'inside', path } : { kind: 'nothing' };
}

function belowFolder(absolutePath: string, names: readonly string[]): string | null {
  for (const name of names) {
    if (absolutePath === name) return '';
    if (absolutePath.startsWith(`${name}/`)) return absolutePath.slice(name.length + 1);
  }
  return null;
}
