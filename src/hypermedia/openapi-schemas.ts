/**
 * Schema components of the API description.
 *
 * One component serves for a resource's answers and for the bodies that make or change it, as in the reference: members that
 * only answers have are `readOnly`, members that only bodies have are `writeOnly`. A member is required when no body can do
 * without it; if only answers have it, or there are no bodies, when every answer has it.
 */

import type { InputField, InputFields } from './input.ts';
import type { Schema } from './openapi-types.ts';
import type { DataType, Field, FieldSchema, Resource } from './resource.ts';
import type { ItemRoute, ListRoute, Route } from './routes.ts';
import { pathNames } from './routes.ts';

const TYPES: Readonly<Record<DataType, Schema>> = {
  string: { type: 'string' },
  integer: { type: 'integer' },
  int64: { type: 'integer', format: 'int64' },
  number: { type: 'number', format: 'double' },
  boolean: { type: 'boolean' },
  'date-time': { type: 'string', format: 'date-time' },
  date: { type: 'string', format: 'date' },
  uuid: { type: 'string', format: 'uuid' },
  uri: { type: 'string', format: 'uri' },
  email: { type: 'string', format: 'email' },
  scalar: {
    oneOf: [{ type: 'string' }, { type: 'integer' }, { type: 'number', format: 'double' }, { type: 'boolean' }],
  },
  any: {},
};

/** Beside an enumeration: the empty text. */
const BLANK = 'BlankEnum';

export function reference(component: string): Schema {
  return { $ref: `#/components/schemas/${component}` };
}

export function typeSchema(type: DataType): Schema {
  return TYPES[type];
}

export function paginatedName(component: string): string {
  return `Paginated${component}List`;
}

function paginated(component: string): Schema {
  const address: Schema = { type: 'string', format: 'uri', nullable: true };
  return {
    type: 'object',
    required: ['count', 'results'],
    properties: {
      count: { type: 'integer' },
      next: address,
      previous: address,
      results: { type: 'array', items: reference(component) },
    },
  };
}

function valueSchema(type: DataType, facts: FieldSchema): Schema {
  const { maxLength, minLength, minimum, maximum, blank, enumeration } = facts;
  if (enumeration) return blank ? { oneOf: [reference(enumeration), reference(BLANK)] } : reference(enumeration);
  const schema: Schema = {
    ...typeSchema(type),
    ...(maxLength !== undefined && { maxLength }),
    ...(minLength !== undefined && { minLength }),
    ...(minimum !== undefined && { minimum }),
    ...(maximum !== undefined && { maximum }),
  };
  return blank && type === 'uri' ? { oneOf: [schema, { type: 'string', maxLength: 0 }] } : schema;
}

/** In OpenAPI 3.0 nothing may stand beside a reference. */
function withFlags(schema: Schema, flags: Schema): Schema {
  if (Object.keys(flags).length === 0) return schema;
  return schema.$ref === undefined ? { ...schema, ...flags } : { allOf: [schema], ...flags };
}

function propertySchema(type: DataType, facts: FieldSchema, access: 'read' | 'write' | 'both'): Schema {
  const { nullable, description } = facts;
  return withFlags(valueSchema(type, facts), {
    ...(nullable && { nullable }),
    ...(access === 'read' && { readOnly: true }),
    ...(access === 'write' && { writeOnly: true }),
    ...(description !== undefined && { description }),
  });
}

/** The values of enumerations, by name. */
export type Enumerations = Readonly<Record<string, readonly string[]>>;

/** How the bodies of a resource's routes speak of one member. */
interface Written {
  readonly input: InputField<unknown>;
  /** No body that makes or changes one can do without it. */
  readonly required: boolean;
}

type WrittenFields = ReadonlyMap<string, Written>;

function linkSchema(field: Field & { kind: 'link' }): Schema {
  const address: Schema = { type: 'string', format: 'uri' };
  const flags: Schema = { readOnly: true, ...(field.nullable && { nullable: true }) };
  return field.many ? { type: 'array', items: address, ...flags } : { ...address, ...flags };
}

interface Property {
  readonly name: string;
  readonly schema: Schema;
  readonly required: boolean;
}

function fieldProperty(field: Field, inputs: WrittenFields): Property {
  const { name } = field;
  if (field.kind === 'link') return { name, schema: linkSchema(field), required: true };
  const written = inputs.get(name);
  const facts = { ...field.schema, ...written?.input.schema };
  const readOnly = field.schema?.readOnly ?? written === undefined;
  const access = readOnly ? 'read' : written?.input.schema.writeOnly ? 'write' : 'both';
  const onlyAnswered = readOnly || inputs.size === 0;
  const required = onlyAnswered ? !field.absentWhenNull : (written?.required ?? false);
  return { name, schema: propertySchema(field.type, facts, access), required };
}

/** A file is described as the reference describes it, an address that may be null, so that generated clients fit. */
function inputProperty(name: string, { input, required }: Written): Property {
  const facts: FieldSchema = { ...input.schema, ...(input.type === 'file' && !required && { nullable: true }) };
  return { name, schema: propertySchema(input.type === 'file' ? 'uri' : input.type, facts, 'write'), required };
}

function objectSchema(properties: readonly Property[]): Schema {
  const required = properties.filter((property) => property.required).map((property) => property.name);
  return {
    type: 'object',
    properties: Object.fromEntries(properties.map(({ name, schema }) => [name, schema])),
    ...(required.length > 0 && { required: required.sort() }),
  };
}

function resourceSchema(fields: readonly Field[], written: WrittenFields): Schema {
  const shown = new Set(fields.map((field) => field.name));
  const onlyWritten = [...written].filter(([name]) => !shown.has(name));
  return objectSchema([
    ...fields.map((field) => fieldProperty(field, written)),
    ...onlyWritten.map(([name, facts]) => inputProperty(name, facts)),
  ]);
}

/** The fields of a route's body, if it takes one. */
function inputsOf(route: ListRoute | ItemRoute): InputFields | undefined {
  return route.kind === 'list' ? route.create?.fields : route.change?.fields;
}

/** What all routes of a component together show and take. */
class ComponentFacts {
  readonly fields = new Map<string, Field>();
  readonly #bodies: InputFields[] = [];

  add(of: Resource, inputs: InputFields | undefined): void {
    for (const field of of.fields) if (!this.fields.has(field.name)) this.fields.set(field.name, field);
    if (inputs) this.#bodies.push(inputs);
  }

  /** Where bodies speak of a member in different ways, the first one counts. */
  get written(): WrittenFields {
    const inputs = new Map(this.#bodies.toReversed().flatMap((body) => Object.entries(body)));
    const isRequired = (name: string): boolean => this.#bodies.every((body) => body[name]?.required ?? false);
    return new Map([...inputs].map(([name, input]) => [name, { input, required: isRequired(name) }]));
  }

  /** The names of the enumerations that its members refer to. */
  enumerations(): readonly string[] {
    const schemas = [
      ...[...this.fields.values()].map((field) => (field.kind === 'data' ? field.schema : undefined)),
      ...[...this.written.values()].map(({ input }) => input.schema),
    ];
    return schemas.flatMap((schema) =>
      schema?.enumeration ? [schema.enumeration, ...(schema.blank ? [BLANK] : [])] : [],
    );
  }
}

/** @throws {Error} when nothing says what the values are */
function enumerationSchema(name: string, enumerations: Enumerations): Schema {
  if (name === BLANK) return { enum: [''] };
  const values = enumerations[name];
  if (!values) throw new Error(`A field refers to the enumeration ${name}, whose values are not declared.`);
  return { type: 'string', enum: values };
}

function sortedByName(schemas: ReadonlyMap<string, Schema>): Readonly<Record<string, Schema>> {
  return Object.fromEntries([...schemas].sort(([one], [other]) => (one < other ? -1 : 1)));
}

/** The schemas of all resources, of their pages and of their enumerations, and those that special routes name. */
export function componentSchemas(
  routes: readonly Route[],
  enumerations: Enumerations,
): Readonly<Record<string, Schema>> {
  const facts = new Map<string, ComponentFacts>();
  const schemas = new Map<string, Schema>();
  for (const route of routes) {
    if (route.kind === 'special') {
      if (route.undocumented) continue;
      for (const { body, answer } of Object.values(route.methods)) {
        for (const content of [body, answer]) {
          if (typeof content === 'object' && content.component) schemas.set(content.component, content.schema);
        }
      }
      continue;
    }
    const { component } = route.of;
    const known = facts.get(component) ?? new ComponentFacts();
    known.add(route.of, inputsOf(route));
    facts.set(component, known);
    if (route.kind === 'list') schemas.set(paginatedName(component), paginated(component));
  }
  for (const [component, known] of facts) {
    schemas.set(component, resourceSchema([...known.fields.values()], known.written));
    for (const name of known.enumerations()) schemas.set(name, enumerationSchema(name, enumerations));
  }
  return sortedByName(schemas);
}

/** Parameters for the numbers of a path; the reference describes them as texts where a file name follows. */
export function pathSchemas(path: string): readonly [string, Schema][] {
  const schema: Schema = path.endsWith('*') ? { type: 'string', pattern: '^[0-9]+$' } : { type: 'integer' };
  return pathNames(path).map((name): [string, Schema] => [name, schema]);
}
