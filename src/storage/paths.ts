/** The one check that every storage path passes before the file system sees it. */
import { UnsafePath } from './errors.ts';

/** Longest component that file systems take, in bytes of UTF-8. */
export const COMPONENT_LIMIT_BYTES = 255;

/** Where arriving bytes wait; not part of the tree. */
export const INCOMING = '.incoming';

/** Where removed things wait for their end; not part of the tree. */
export const TRASH = '.trash';

/** Control characters, NUL among them. */
const CONTROL = /\p{Cc}/u;

/** What is wrong with one component of a path, or null. */
export function componentProblem(component: string): string | null {
  if (component === '') return 'it has an empty component (two slashes in a row, or one at an end)';
  if (component === '.' || component === '..') return `"${component}" is not allowed as a component`;
  if (CONTROL.test(component)) return 'it contains a control character';
  if (!component.isWellFormed()) return 'it contains half a surrogate pair, which is no character';
  if (Buffer.byteLength(component) > COMPONENT_LIMIT_BYTES) return 'a component is longer than 255 bytes';
  return null;
}

/** @throws {UnsafePath} unless the path is relative and each component is a plain name */
export function splitStoragePath(path: string): string[] {
  const components = path.split('/');
  for (const component of components) {
    const problem = componentProblem(component);
    if (problem !== null) throw new UnsafePath(path, problem);
  }
  if (components[0] === INCOMING) throw new UnsafePath(path, `${INCOMING} is not part of the tree`);
  return components;
}
