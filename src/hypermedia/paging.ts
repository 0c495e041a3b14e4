/** `limit`, `offset`, `next` and `previous` (`wire.md` section 7). */

export const DEFAULT_LIMIT = 10;

export interface Page {
  readonly limit: number;
  readonly offset: number;
}

/** A run of digits as a number that is safe to compute with; null for anything else. */
function wholeNumber(text: string | null): number | null {
  if (text === null || !/^\s*\+?\d+\s*$/.test(text)) return null;
  return Math.min(Number(text), Number.MAX_SAFE_INTEGER);
}

function last(query: URLSearchParams, name: string): string | null {
  return query.getAll(name).at(-1) ?? null;
}

/** @param largest limit that is served; asking for more gives that many */
export function readPage(query: URLSearchParams, largest: number): Page {
  const limit = wholeNumber(last(query, 'limit'));
  return {
    limit: limit === null || limit === 0 ? DEFAULT_LIMIT : Math.min(limit, largest),
    offset: wholeNumber(last(query, 'offset')) ?? 0,
  };
}

export interface PageLinks {
  readonly next: string | null;
  readonly previous: string | null;
}

/** @param address of the request without its query */
export function pageLinks(address: string, query: URLSearchParams, page: Page, total: number): PageLinks {
  const at = (offset: number): string => {
    const parameters = new Map(query);
    parameters.delete('download_token');
    parameters.set('limit', String(page.limit));
    if (offset > 0) parameters.set('offset', String(offset));
    else parameters.delete('offset');
    const sorted = [...parameters].sort(([one], [other]) => (one < other ? -1 : 1));
    return `${address}?${new URLSearchParams(sorted)}`;
  };
  return {
    next: page.offset + page.limit < total ? at(page.offset + page.limit) : null,
    previous: page.offset > 0 ? at(page.offset - page.limit) : null,
  };
}
