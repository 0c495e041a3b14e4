/**
 * Declaring resources.
 *
 * Terminology
 *   resource  one kind of object on the wire: its fields, their SQL, its address, and who may read it
 *   field     a member of the representation: `data` (a value) or `link` (an address)
 *   route     a path with its methods: a list of a resource, one item of it, or something special (`routes.ts`)
 *
 * A declaration is plain data. Routes, both representations, search, validation, `Allow` and OpenAPI follow from it.
 */
import { type RawBuilder, sql } from 'kysely';
import type { CallerSql, Role, Rule } from '../access/caller.ts';

/** `integer` has 32 bits, `int64` has 64; `scalar`: a text, number or boolean; `any`: any JSON value. */
export type DataType =
  | 'string'
  | 'integer'
  | 'int64'
  | 'number'
  | 'boolean'
  | 'date-time'
  | 'date'
  | 'uuid'
  | 'uri'
  | 'email'
  | 'scalar'
  | 'any';

/** What OpenAPI says of a field besides its type. */
export interface FieldSchema {
  readonly maxLength?: number;
  readonly minLength?: number;
  readonly minimum?: number;
  readonly maximum?: number;
  readonly nullable?: boolean;
  /** An empty text is allowed beside an address or one of the enumeration's values. */
  readonly blank?: boolean;
  /** Name of the schema component that lists the values, such as `PluginType`. */
  readonly enumeration?: string;
  readonly description?: string;
  /**
   * Left out: read-only when no route writes it. Said only where the reference describes a field otherwise than its routes
   * treat it, because the types of generated clients depend on it.
   */
  readonly readOnly?: boolean;
}

export type FieldSql = RawBuilder<unknown> | ((caller: CallerSql) => RawBuilder<unknown>);

interface FieldBase {
  readonly name: string;
  /** Left out: the column of the same name (data), or the id (link). */
  readonly sql?: FieldSql;
  /** Roles that do not see the field; everybody does when left out. */
  readonly hiddenFrom?: readonly Role[];
}

export interface DataField extends FieldBase {
  readonly kind: 'data';
  readonly type: DataType;
  /** The member is left out, rather than null, when there is no value. */
  readonly absentWhenNull?: boolean;
  readonly schema?: FieldSchema;
}

export interface LinkField extends FieldBase {
  readonly kind: 'link';
  /** Path below the API with `{}` where the value goes, such as `users/{}/`. */
  readonly to: string;
  /** The SQL gives an array: one address each. */
  readonly many?: boolean;
  readonly nullable?: boolean;
}

export type Field = DataField | LinkField;

type DataOptions = Omit<DataField, 'kind' | 'name' | 'type' | 'schema'> & FieldSchema;
type LinkOptions = Omit<LinkField, 'kind' | 'name' | 'to'>;

/** A field that holds a value. */
export function data(name: string, type: DataType, options: DataOptions = {}): DataField {
  const { sql: expression, hiddenFrom, absentWhenNull, ...schema } = options;
  return {
    kind: 'data',
    name,
    type,
    schema,
    ...(expression !== undefined && { sql: expression }),
    ...(hiddenFrom !== undefined && { hiddenFrom }),
    ...(absentWhenNull !== undefined && { absentWhenNull }),
  };
}

/**
 * Fields that the reference describes as if requests could set them, though no route does. The types of generated clients
 * depend on it, so we describe them so too; what is served does not change.
 */
export function describedAsWritable(...fields: readonly DataField[]): readonly DataField[] {
  return fields.map((field) => ({ ...field, schema: { ...field.schema, readOnly: false } }));
}

/** A field that holds an address. */
export function link(name: string, to: string, options: LinkOptions = {}): LinkField {
  return { kind: 'link', name, to, ...options };
}

export interface ResourceDeclaration {
  /** What an error calls it, such as `feed`. */
  readonly name: string;
  /** Name of its OpenAPI component, such as `Feed`. */
  readonly component: string;
  /** The FROM clause; the first table has the alias below. */
  readonly from: RawBuilder<unknown>;
  readonly alias: string;
  /** A condition that holds for all rows of this kind. */
  readonly where?: RawBuilder<unknown>;
  /** The number that stands in its address; `<alias>.id` when left out. */
  readonly id?: RawBuilder<unknown>;
  /** Its address, with `{}` for the id. */
  readonly url: string;
  /** What stands in its address, where that is not the id. */
  readonly urlValue?: RawBuilder<unknown>;
  /** Who may read one. */
  readonly read: Rule;
  /** All fields but `url` and `id`, which come first. */
  readonly fields: readonly Field[];
}

export interface Resource extends ResourceDeclaration {
  readonly id: RawBuilder<unknown>;
}

export function resource(declaration: ResourceDeclaration): Resource {
  const id = declaration.id ?? sql.ref(`${declaration.alias}.id`);
  const value = declaration.urlValue ?? id;
  const first: Field[] = [link('url', declaration.url, { sql: value }), data('id', 'integer', { sql: id })];
  return { ...declaration, id, fields: [...first, ...declaration.fields] };
}

/** The fields that a role sees. */
export function fieldsFor(of: Resource, role: Role): readonly Field[] {
  return of.fields.filter((field) => !field.hiddenFrom?.includes(role));
}

/** The SQL expression of a field. */
export function fieldSql(of: Resource, field: Field, caller: CallerSql): RawBuilder<unknown> {
  if (typeof field.sql === 'function') return field.sql(caller);
  if (field.sql !== undefined) return field.sql;
  return field.kind === 'link' ? of.id : sql.ref(`${of.alias}.${field.name}`);
}
