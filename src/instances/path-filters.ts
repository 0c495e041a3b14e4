/** The filters of `ts` plugins: regular expressions, separated by commas, that are searched for in the paths of files. */
import { invalid } from '../hypermedia/errors.ts';

export interface PathFilter {
  /** As it was written, without blanks around. An empty one lets every path pass. */
  readonly text: string;
  readonly expression: RegExp;
}

/** The expressions of a list, without blanks around. */
export function splitFilters(list: string): readonly string[] {
  return list.split(',').map((part) => part.trim());
}

/** @throws {InvalidFields} naming `field` when one of them is no regular expression */
export function readFilters(list: string, field: string): readonly PathFilter[] {
  return splitFilters(list).map((text) => {
    try {
      return { text, expression: new RegExp(text) };
    } catch (error) {
      const reason = error instanceof Error ? error.message : String(error);
      throw invalid(field, `"${text.slice(0, 100)}" is not a regular expression: ${reason}.`);
    }
  });
}
