/**
 * What the server has acknowledged about files.
 *
 * A change is a set of files that are there before, and one that are there after it. While its request runs, and when it was cut
 * off, either may be found, and nothing in between.
 */
import assert from 'node:assert/strict';

export interface StoredFile {
  readonly path: string;
  readonly sizeBytes: number;
  /** Hexadecimal. */
  readonly sha256: string;
}

export interface Change {
  readonly before: readonly StoredFile[];
  readonly after: readonly StoredFile[];
  /** Carried out at some time after it was acknowledged; until then both states are right. */
  readonly inBackground?: boolean;
}

export interface ListedFile {
  readonly id: number;
  readonly fname: string;
  readonly fsize: number;
}

export class Ledger {
  readonly #files = new Map<string, StoredFile>();
  /** Changes whose outcome is not known; their files are in no other place. */
  readonly #open = new Set<Change>();
  /** Of these, the ones that the server has promised to carry out. */
  readonly #promised = new Set<Change>();

  /** Files that are there for certain. */
  files(): StoredFile[] {
    return [...this.#files.values()];
  }

  begin(change: Change): void {
    for (const { path } of change.before) {
      assert.ok(this.#files.delete(path), `the test changes ${path}, of which it knows nothing`);
    }
    this.#open.add(change);
  }

  acknowledge(change: Change): void {
    if (change.inBackground) this.#promised.add(change);
    else this.#settle(change, change.after);
  }

  /** Compares all that is known with a list of all files, and finds out what became of changes that were cut off. */
  compare(listed: readonly ListedFile[]): void {
    const found = new Map(listed.map(({ fname, fsize }) => [fname, fsize]));
    assert.equal(found.size, listed.length, 'no path is listed twice');
    for (const change of this.#open) {
      const state = stateOf(change, found);
      if (!change.inBackground) this.#settle(change, state);
      for (const { path } of state) if (change.inBackground) found.delete(path);
    }
    const sizes = (entries: Iterable<readonly [string, number]>): [string, number][] =>
      [...entries].map(([path, size]): [string, number] => [path, size]).sort(([a], [b]) => (a < b ? -1 : 1));
    assert.deepEqual(
      sizes(found),
      sizes(this.files().map(({ path, sizeBytes }) => [path, sizeBytes])),
      'the files that are listed are those that were acknowledged',
    );
  }

  /** Whether all that was promised has been done. */
  isSettled(listed: readonly ListedFile[]): boolean {
    const found = new Set(listed.map(({ fname }) => fname));
    return [...this.#promised].every(({ before }) => before.every(({ path }) => !found.has(path)));
  }

  #settle(change: Change, state: readonly StoredFile[]): void {
    this.#open.delete(change);
    for (const file of state) this.#files.set(file.path, file);
  }
}

function stateOf({ before, after }: Change, found: ReadonlyMap<string, number>): readonly StoredFile[] {
  const all = [...before, ...after];
  const describe = (files: readonly StoredFile[]): string =>
    JSON.stringify(files.map(({ path, sizeBytes }) => `${path} ${sizeBytes}`).sort());
  const present = all.filter(({ path }) => found.has(path));
  const actual = describe(present.map((file) => ({ ...file, sizeBytes: found.get(file.path) ?? -1 })));
  if (actual === describe(before)) return before;
  assert.equal(actual, describe(after), `a change was half done; before it: ${describe(before)}`);
  return after;
}
