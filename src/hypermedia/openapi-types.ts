/** The part of OpenAPI 3.0.3 that we write. Source: https://spec.openapis.org/oas/v3.0.3 */

export interface Schema {
  readonly $ref?: string;
  readonly type?: 'string' | 'integer' | 'number' | 'boolean' | 'array' | 'object';
  readonly format?: string;
  readonly description?: string;
  readonly enum?: readonly string[];
  readonly default?: unknown;
  readonly maxLength?: number;
  readonly minLength?: number;
  readonly minimum?: number;
  readonly maximum?: number;
  readonly pattern?: string;
  readonly nullable?: boolean;
  readonly readOnly?: boolean;
  readonly writeOnly?: boolean;
  readonly items?: Schema;
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly required?: readonly string[];
  readonly additionalProperties?: Schema;
  readonly allOf?: readonly Schema[];
  readonly oneOf?: readonly Schema[];
}

/** A body or an answer of a special route. */
export interface Content {
  readonly types: readonly string[];
  readonly schema: Schema;
  /** Name of the component that the schema becomes. */
  readonly component?: string;
}

export interface Parameter {
  readonly name: string;
  readonly in: 'path' | 'query';
  readonly required: boolean;
  readonly description?: string;
  readonly schema: Schema;
}

export type MediaTypes = Readonly<Record<string, { readonly schema: Schema }>>;

export interface Answer {
  readonly description: string;
  readonly content?: MediaTypes;
}

export type AnswerReference = { readonly $ref: string };

export interface Operation {
  readonly operationId: string;
  readonly summary: string;
  readonly tags: readonly string[];
  readonly parameters: readonly Parameter[];
  readonly requestBody?: { readonly content: MediaTypes; readonly required?: boolean };
  readonly security: readonly Readonly<Record<string, readonly string[]>>[];
  readonly responses: Readonly<Record<string, Answer | AnswerReference>>;
}

export type PathItem = Readonly<Partial<Record<'get' | 'post' | 'put' | 'delete', Operation>>>;

export type SecurityScheme =
  | { readonly type: 'http'; readonly scheme: 'basic' }
  | {
      readonly type: 'apiKey';
      readonly in: 'header' | 'query' | 'cookie';
      readonly name: string;
      readonly description?: string;
    };

export interface OpenApiDocument {
  readonly openapi: '3.0.3';
  readonly info: { readonly title: string; readonly version: string; readonly description: string };
  readonly paths: Readonly<Record<string, PathItem>>;
  readonly components: {
    readonly schemas: Readonly<Record<string, Schema>>;
    readonly responses: Readonly<Record<string, Answer>>;
    readonly securitySchemes: Readonly<Record<string, SecurityScheme>>;
  };
}
