/** An answer as a page for a person who opens it in a browser: the same data, with links that can be followed. */
import { STATUS_CODES } from 'node:http';
import { escapeHtml, pageFrame } from './html.ts';

export interface PageContent {
  /** Of the request, absolute. */
  readonly address: string;
  readonly status: number;
  /** The answer's JSON form. */
  readonly content: unknown;
}

type Members = Readonly<Record<string, unknown>>;

function isMembers(value: unknown): value is Members {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

const isAddress = (value: unknown): value is string => typeof value === 'string' && /^https?:\/\/\S+$/i.test(value);

function anchor(href: string, text: string): string {
  return `<a href="${escapeHtml(href)}">${escapeHtml(text)}</a>`;
}

const SHORT_TEXT = 300;
const PREVIEW = 100;

/** Texts of many lines or characters are folded behind their beginning. */
function longText(text: string): string {
  if (text.length <= SHORT_TEXT && !text.includes('\n')) return escapeHtml(text);
  const preview = text.slice(0, PREVIEW).replace(/\s+/g, ' ').trim();
  const size = `${text.length} characters`;
  return `<details><summary>${escapeHtml(preview)}… <span class="quiet">(${size})</span></summary><pre>${escapeHtml(text)}</pre></details>`;
}

function valueHtml(value: unknown): string {
  const isEmpty = value === null || value === undefined || value === '' || (Array.isArray(value) && value.length === 0);
  if (isEmpty) return '<span class="quiet">—</span>';
  if (isAddress(value)) return anchor(value, value);
  if (typeof value === 'string') return longText(value);
  if (Array.isArray(value) && value.length > 0 && value.every(isAddress)) {
    return value.map((one) => anchor(one, one)).join('<br>');
  }
  return typeof value === 'object' ? longText(JSON.stringify(value, null, 2)) : escapeHtml(String(value));
}

function definitions(entries: readonly [string, unknown][]): string {
  if (entries.length === 0) return '';
  return `<dl>${entries.map(([name, value]) => `<dt>${escapeHtml(name)}</dt><dd>${valueHtml(value)}</dd>`).join('')}</dl>`;
}

function relations(links: readonly [string, string][]): string {
  if (links.length === 0) return '';
  return `<nav class="links">${links.map(([relation, href]) => anchor(href, relation)).join('')}</nav>`;
}

/** What a person would call the object. */
function nameOf(item: Members): string {
  const isText = (value: unknown): value is string => typeof value === 'string' && value !== '';
  const { name, title, plugin_name, fname, path, username, param_name, version } = item;
  const words = [[name, title, plugin_name, fname, path, username, param_name].find(isText), version];
  return words.filter(isText).join(' ');
}

/** Members that are no fields of the object. */
const ENVELOPE = ['url', 'template', 'queries', 'collection_links'];

function itemHtml(item: Members, origin: string, heading: boolean): string {
  const fields = Object.entries(item).filter(([name]) => !ENVELOPE.includes(name) && !(heading && name === 'id'));
  const isOwn = (value: unknown): value is string => isAddress(value) && value.startsWith(`${origin}/`);
  const own = fields.filter((field): field is [string, string] => isOwn(field[1]));
  const others = fields.filter(([, value]) => !isOwn(value));
  const identity = escapeHtml(`#${item.id ?? ''} ${nameOf(item)}`.trim());
  const linked = isAddress(item.url) ? `<a href="${escapeHtml(item.url)}">${identity}</a>` : identity;
  return `<article>${heading ? `<h2>${linked}</h2>` : ''}${relations(own)}${definitions(others)}</article>`;
}

function pagingHtml(list: Members, rows: number, address: URL | null): string {
  const offset = Number(address?.searchParams.get('offset') ?? 0);
  const first = Number.isInteger(offset) && offset > 0 ? offset + 1 : 1;
  const range = rows === 0 ? `None of ${list.count}` : `${first}–${first + rows - 1} of ${list.count}`;
  const links = (['previous', 'next'] as const).flatMap((relation) => {
    const href = list[relation];
    return isAddress(href) ? [anchor(href, relation === 'next' ? 'Next →' : '← Previous')] : [];
  });
  return `<p class="paging"><span class="quiet">${escapeHtml(range)}</span>${links.join('')}</p>`;
}

function dataNames(form: unknown): readonly string[] {
  const data = isMembers(form) && Array.isArray(form.data) ? form.data : [];
  return data.flatMap((field) => (isMembers(field) && typeof field.name === 'string' ? [field.name] : []));
}

function searchHtml(form: unknown): string {
  if (!isMembers(form) || !isAddress(form.href)) return '';
  const inputs = dataNames(form).map((name) => `<label>${escapeHtml(name)}<input name="${escapeHtml(name)}"></label>`);
  return `<section><details><summary>Search</summary><form class="search" method="get" action="${escapeHtml(form.href)}">${inputs.join('')}<button>Search</button></form></details></section>`;
}

function templateHtml(template: unknown): string {
  const names = dataNames(template);
  return names.length === 0 ? '' : `<p class="quiet">Can be written: ${escapeHtml(names.join(', '))}</p>`;
}

function listHtml(list: Members, rows: readonly unknown[], address: URL | null): string {
  const links = isMembers(list.collection_links) ? Object.entries(list.collection_links) : [];
  const related = relations(links.filter((link): link is [string, string] => isAddress(link[1])));
  const searches = Array.isArray(list.queries) ? list.queries.map(searchHtml).join('') : '';
  const items = rows.filter(isMembers).map((item) => itemHtml(item, address?.origin ?? '', true));
  const paging = pagingHtml(list, rows.length, address);
  return `${related}${searches}${paging}${items.join('')}${rows.length > 3 ? paging : ''}${templateHtml(list.template)}`;
}

function errorHtml(status: number, content: unknown, address: URL | null): string {
  const members = isMembers(content) ? content : { detail: String(content) };
  const { detail, error, ...fields } = members;
  const text = typeof detail === 'string' ? `<p>${escapeHtml(detail)}</p>` : '';
  const login =
    status === 401
      ? `<p>${anchor(`/api/v1/auth/login/?${new URLSearchParams({ next: address?.pathname ?? '/api/v1/' })}`, 'Log in')} to see it.</p>`
      : '';
  return `<section role="alert"><h2>${status} ${escapeHtml(STATUS_CODES[status] ?? '')}</h2>${text}${definitions(Object.entries(fields))}</section>${login}`;
}

function segmentsOf(address: URL | null): readonly string[] {
  return (address?.pathname ?? '').split('/').filter((segment) => segment !== '');
}

/** The way from the API's root to here; every step but the last can be gone back to. */
function trailHtml(segments: readonly string[]): string {
  const steps = segments.map((segment, index) => {
    const href = `/${segments.slice(0, index + 1).join('/')}/`;
    const isBelowRoot = index >= segments.indexOf('v1') && index < segments.length - 1;
    return isBelowRoot ? anchor(href, segment) : escapeHtml(segment);
  });
  return `<nav class="trail">${steps.join(' / ')}</nav>`;
}

function headingOf(segments: readonly string[], content: unknown): string {
  const words = segments.slice(segments.indexOf('v1') + 1).filter((word) => word !== 'search');
  const name = isMembers(content) ? nameOf(content) : '';
  const place = words.length === 0 ? 'feeds' : words.join(' ');
  return `${place.charAt(0).toUpperCase()}${place.slice(1)}${segments.at(-1) === 'search' ? ': search' : ''}${name === '' ? '' : `: ${name}`}`;
}

function bodyHtml({ status, content }: PageContent, address: URL | null): string {
  if (status >= 400 || !isMembers(content)) return errorHtml(status, content, address);
  if (Array.isArray(content.results)) return listHtml(content, content.results, address);
  return itemHtml(content, address?.origin ?? '', false) + templateHtml(content.template);
}

/** Shown at addresses where a person may begin, though no resource is there. */
function frontPage(): string {
  return pageFrame(
    'Hypercube',
    `<h1>Hypercube</h1><p>This server runs image analyses and keeps what they need and make. Programs talk to it; for people there are:</p>
<section><dl><dt><a href="/api/v1/">The API</a></dt><dd>Every feed, file, plugin and account as a page, with links from one to the next.</dd>
<dt><a href="/schema/redoc/">Reference</a></dt><dd>All operations of the API on one page.</dd>
<dt><a href="/schema/swagger-ui/">Try it out</a></dt><dd>The same, with forms that send requests.</dd>
<dt><a href="/schema/">OpenAPI</a></dt><dd>The description from which clients can be generated.</dd>
<dt><a href="/api/v1/auth/login/">Log in</a></dt><dd>To see what is yours.</dd></dl></section>`,
  );
}

const FRONT_DOORS = ['/', '/api', '/api/'];

export function renderPage(page: PageContent): string {
  const address = URL.canParse(page.address) ? new URL(page.address) : null;
  if (page.status === 404 && FRONT_DOORS.includes(address?.pathname ?? '')) return frontPage();
  const segments = segmentsOf(address);
  const heading = headingOf(segments, page.content);
  const query = new URLSearchParams(address?.search);
  query.set('format', 'json');
  const asJson = page.status < 400 ? `<p>${anchor(`?${query}`, 'The same as JSON')}</p>` : '';
  return pageFrame(
    `${heading} · Hypercube`,
    `${trailHtml(segments)}<h1>${escapeHtml(heading)}</h1>${bodyHtml(page, address)}${asJson}`,
  );
}
