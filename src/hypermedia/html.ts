/** The same answer for a person who opens it in a browser: everything escaped, links that can be followed, no scripts. */

export interface PageContent {
  /** Of the request. */
  readonly address: string;
  readonly status: number;
  /** The answer's JSON form. */
  readonly content: unknown;
}

export const PAGE_SECURITY_POLICY =
  "default-src 'none'; style-src 'unsafe-inline'; img-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'";

const ENTITIES: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
};

export function escapeHtml(text: string): string {
  return text.replace(/[&<>"']/g, (character) => ENTITIES[character] ?? character);
}

/** A whole document around a body. */
export function pageFrame(title: string, body: string): string {
  return `<!doctype html><html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>${escapeHtml(title)}</title></head><body>${body}</body></html>`;
}

export function renderPage(page: PageContent): string {
  return pageFrame(page.address, `<pre>${escapeHtml(JSON.stringify(page.content, null, 2))}</pre>`);
}
