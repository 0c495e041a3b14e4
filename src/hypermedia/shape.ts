/** Writes rows of a resource as JSON and as items of Collection+JSON, straight into text. */
import type { Role } from '../access/caller.ts';
import type { Links } from './links.ts';
import { type Field, fieldsFor, type LinkField, type Resource } from './resource.ts';
import type { Row } from './statement.ts';

/** Any JSON value as text. */
export function encode(value: unknown): string {
  switch (typeof value) {
    case 'number':
    case 'boolean':
      return String(value);
    case 'undefined':
      return 'null';
    default:
      return value === null ? 'null' : JSON.stringify(value);
  }
}

interface FieldWriter {
  readonly field: Field;
  /** `"name":` */
  readonly key: string;
  /** `{"name":"…","value":` or `{"rel":"…","href":` */
  readonly open: string;
  /** Of a link: what stands around its value, `"http://…/` and `/"`. */
  readonly before: string;
  readonly after: string;
}

/** One string in one piece, so that whatever is made from it has few pieces to put together. */
function joined(...parts: readonly string[]): string {
  return parts.join('');
}

function writerOf(field: Field, links: Links): FieldWriter {
  const name = JSON.stringify(field.name);
  const [before = '', after = ''] = field.kind === 'link' ? field.to.split('{}') : [];
  const [kind, content] = field.kind === 'link' ? ['rel', 'href'] : ['name', 'value'];
  return {
    field,
    key: joined(name, ':'),
    open: joined('{"', kind, '":', name, ',"', content, '":'),
    before: joined('"', links.to(before)),
    after: joined(after, '"'),
  };
}

/** A link's value as text: numbers need no escaping; names appear as they are, but for what would end the path or mean another character. */
function address({ before, after }: FieldWriter, value: unknown): string {
  if (typeof value === 'number') return before + value + after;
  const escaped = String(value).replace(/[%?#]/g, encodeURIComponent);
  return before + JSON.stringify(escaped).slice(1, -1) + after;
}

/** One for each value; none where there is nothing to lead to. */
function addresses(writer: FieldWriter, field: LinkField, value: unknown): readonly string[] {
  if (field.many) return Array.isArray(value) ? value.map((one) => address(writer, one)) : [];
  return value === null || value === undefined ? [] : [address(writer, value)];
}

export class Shape {
  readonly #fields: readonly Field[];
  readonly #writers = new WeakMap<Links, readonly FieldWriter[]>();

  constructor(of: Resource, role: Role) {
    this.#fields = fieldsFor(of, role);
  }

  /** The members of the flat JSON object, without braces. */
  members(row: Row, links: Links): string {
    let text = '';
    for (const writer of this.#writersFor(links)) {
      const { field, key } = writer;
      const value = row[field.name];
      if (field.kind === 'data' && field.absentWhenNull && value === null) continue;
      text += (text === '' ? key : `,${key}`) + this.#value(writer, value);
    }
    return text;
  }

  json(row: Row, links: Links): string {
    return `{${this.members(row, links)}}`;
  }

  /** An item of Collection+JSON: `url` is its `href`, links apart from data, links that lead nowhere left out. */
  collectionItem(row: Row, links: Links): string {
    let data = '';
    let relations = '';
    let href = '';
    for (const writer of this.#writersFor(links)) {
      const { field, open } = writer;
      const value = row[field.name];
      if (field.kind === 'data') {
        if (field.absentWhenNull && value === null) continue;
        data += `${data === '' ? open : `,${open}`}${encode(value)}}`;
      } else if (field.name === 'url') {
        href = `,"href":${address(writer, value)}`;
      } else {
        for (const one of addresses(writer, field, value))
          relations += `${relations === '' ? open : `,${open}`}${one}}`;
      }
    }
    return `{"data":[${data}]${href}${relations === '' ? '' : `,"links":[${relations}]`}}`;
  }

  #value(writer: FieldWriter, value: unknown): string {
    const { field } = writer;
    if (field.kind === 'data') return encode(value);
    const found = addresses(writer, field, value);
    return field.many ? `[${found.join(',')}]` : (found[0] ?? 'null');
  }

  #writersFor(links: Links): readonly FieldWriter[] {
    const known = this.#writers.get(links);
    if (known !== undefined) return known;
    const made = this.#fields.map((field) => writerOf(field, links));
    this.#writers.set(links, made);
    return made;
  }
}
