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
  readonly before: string;
  readonly after: string;
}

function writerOf(field: Field): FieldWriter {
  const name = JSON.stringify(field.name);
  const [before = '', after = ''] = field.kind === 'link' ? field.to.split('{}') : [];
  const open = field.kind === 'link' ? `{"rel":${name},"href":` : `{"name":${name},"value":`;
  return { field, key: `${name}:`, open, before, after };
}

/** A link's value as text: numbers need no escaping; names appear as they are, but for what would end the path or mean another character. */
function address(writer: FieldWriter, value: unknown, links: Links): string {
  const before = links.to(writer.before);
  if (typeof value === 'number') return `"${before}${value}${writer.after}"`;
  const escaped = String(value).replace(/[%?#]/g, encodeURIComponent);
  return JSON.stringify(before + escaped + writer.after);
}

function addresses(field: LinkField, value: unknown): readonly unknown[] {
  if (field.many) return Array.isArray(value) ? value : [];
  return value === null || value === undefined ? [] : [value];
}

export class Shape {
  readonly #writers: readonly FieldWriter[];

  constructor(of: Resource, role: Role) {
    this.#writers = fieldsFor(of, role).map(writerOf);
  }

  /** The members of the flat JSON object, without braces. */
  members(row: Row, links: Links): string {
    let text = '';
    for (const writer of this.#writers) {
      const member = this.#member(writer, row[writer.field.name], links);
      if (member !== null) text += text === '' ? member : `,${member}`;
    }
    return text;
  }

  json(row: Row, links: Links): string {
    return `{${this.members(row, links)}}`;
  }

  /** An item of Collection+JSON: `url` is its `href`, links apart from data, links that lead nowhere left out. */
  collectionItem(row: Row, links: Links): string {
    const data: string[] = [];
    const relations: string[] = [];
    let href = '';
    for (const writer of this.#writers) {
      const { field } = writer;
      const value = row[field.name];
      if (field.name === 'url') href = `,"href":${address(writer, value, links)}`;
      else if (field.kind === 'link')
        for (const one of addresses(field, value)) relations.push(`${writer.open}${address(writer, one, links)}}`);
      else if (!(field.absentWhenNull && value === null)) data.push(`${writer.open}${encode(value)}}`);
    }
    const linkMember = relations.length > 0 ? `,"links":[${relations.join(',')}]` : '';
    return `{"data":[${data.join(',')}]${href}${linkMember}}`;
  }

  #member(writer: FieldWriter, value: unknown, links: Links): string | null {
    const { field, key } = writer;
    if (field.kind === 'data') return field.absentWhenNull && value === null ? null : key + encode(value);
    if (field.many)
      return `${key}[${addresses(field, value)
        .map((one) => address(writer, one, links))
        .join(',')}]`;
    return key + (value === null || value === undefined ? 'null' : address(writer, value, links));
  }
}
