/** What all pages for people share: one frame, one style, everything escaped, no scripts. */
import { createHash } from 'node:crypto';
import { PAGE_STYLE } from './page-style.ts';

const STYLE_HASH = createHash('sha256').update(PAGE_STYLE).digest('base64');

export const PAGE_SECURITY_POLICY = `default-src 'none'; style-src 'sha256-${STYLE_HASH}'; img-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'`;

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

const HEADER = `<header><strong><a href="/api/v1/">Hypercube</a></strong>
<a href="/schema/redoc/">Reference</a><a href="/schema/swagger-ui/">Try it out</a><a href="/api/v1/auth/login/">Log in</a></header>`;

/** A whole document around a body, which is HTML already. */
export function pageFrame(title: string, body: string): string {
  return `<!doctype html><html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>${escapeHtml(title)}</title><style>${PAGE_STYLE}</style></head><body>${HEADER}<main>${body}</main></body></html>`;
}
