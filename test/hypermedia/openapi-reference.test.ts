/** The description of everything that is served, against the rules of OpenAPI and against the reference's description. */
import assert from 'node:assert/strict';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { Validator } from '@seriousme/openapi-schema-validator';
import type { OpenApiDocument, Operation, Parameter, Schema } from '../../src/hypermedia/openapi-types.ts';
import { openApplication, type TestApplication } from '../helpers/application.ts';

const REFERENCE = join(import.meta.dirname, '../../../shared/spec/openapi.json');
const missing = existsSync(REFERENCE) ? false : 'the description of the reference is not here';

/** What every operation of the contract is called. */
const CONTRACT: Readonly<Record<string, string>> = {
  authTokenCreate: 'post /api/v1/auth-token/',
  svcAdminApiV1ComputeresourcesCreate: 'post /svc-admin/api/v1/computeresources/',
  svcAdminApiV1ComputeresourcesList: 'get /svc-admin/api/v1/computeresources/',
  svcAdminApiV1ComputeresourcesRetrieve: 'get /svc-admin/api/v1/computeresources/{id}/',
  svcAdminApiV1ComputeresourcesDestroy: 'delete /svc-admin/api/v1/computeresources/{id}/',
};

const MAY_BE_GONE = 'null when it has been removed';
const WITH_WORKFLOWS = 'comes with workflows';

/** Members that are described otherwise than by the reference, and why. Whoever makes one the same takes it out here. */
const DIFFERENCES: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  ComputeResource: { compute_user: 'the administration shows it' },
  Feed: { folder: MAY_BE_GONE },
  FileBrowserFolder: { parent: 'null for the root' },
  FileBrowserLinkFile: {
    linked_folder: 'null when the target is a file or gone',
    linked_file: 'null when the target is a folder or gone',
  },
  PartialPluginInstance: { output_folder: MAY_BE_GONE },
  PluginInstance: {
    pipeline_id: WITH_WORKFLOWS,
    pipeline_name: WITH_WORKFLOWS,
    workflow_id: WITH_WORKFLOWS,
    output_folder: MAY_BE_GONE,
    compute_resource: MAY_BE_GONE,
  },
};

interface Served {
  readonly place: string;
  readonly operation: Operation;
}

function operationsOf(document: OpenApiDocument): readonly Served[] {
  return Object.entries(document.paths).flatMap(([path, item]) =>
    Object.entries(item).map(([method, operation]) => ({ place: `${method} ${path}`, operation })),
  );
}

/** Where the reference has the same; its administration lies elsewhere. */
function placeInReference(place: string): string {
  return place.replace('/svc-admin/', '/chris-admin/');
}

function parametersOf({ parameters = [] }: Partial<Operation>): Readonly<Record<string, string | undefined>> {
  return Object.fromEntries(
    parameters.map(({ in: where, name, schema }: Parameter) => [`${where} ${name}`, schema.type]),
  );
}

/** What a generated client is made from. */
function memberFacts(schema: Schema | undefined): object | undefined {
  if (schema === undefined) return undefined;
  const { type, format, readOnly, writeOnly, nullable, oneOf, allOf, $ref } = schema;
  return {
    type: $ref !== undefined || allOf ? 'reference' : (type ?? (oneOf ? 'one of' : 'any')),
    format,
    readOnly: readOnly ?? false,
    writeOnly: writeOnly ?? false,
    nullable: nullable ?? false,
  };
}

function isSame(one: unknown, other: unknown): boolean {
  try {
    assert.deepEqual(one, other);
    return true;
  } catch {
    return false;
  }
}

describe('the description of all routes', () => {
  let application: TestApplication;
  let document: OpenApiDocument;
  before(async () => {
    application = await openApplication();
    document = JSON.parse((await application.app.inject({ url: '/schema/?format=json' })).body);
  });
  after(() => application.close());

  const recorded = (): OpenApiDocument => JSON.parse(readFileSync(REFERENCE, 'utf8'));

  test('is valid OpenAPI', async () => {
    const { valid, errors } = await new Validator().validate({ ...document });
    assert.ok(valid, JSON.stringify(errors));
  });

  test('refers only to components that it has', () => {
    const { schemas } = document.components;
    for (const [, name = ''] of JSON.stringify(document).matchAll(/"#\/components\/schemas\/(\w+)"/g))
      assert.ok(schemas[name], name);
  });

  test('has the operations of the contract under their ids', () => {
    const ids = new Map(operationsOf(document).map(({ place, operation }) => [operation.operationId, place]));
    for (const [id, place] of Object.entries(CONTRACT)) assert.equal(ids.get(id), place);
  });

  test('lists the administration under one prefix', () => {
    assert.ok(Object.keys(document.paths).every((path) => !path.startsWith('/chris-admin/')));
  });

  test('gives every operation the id, parameters, bodies and answers of the reference', { skip: missing }, () => {
    const known = new Map(operationsOf(recorded()).map(({ place, operation }) => [place, operation]));
    for (const { place, operation } of operationsOf(document)) {
      const other = known.get(placeInReference(place));
      if (!other) continue;
      const isNamedByContract = /svc-admin|auth-token/.test(place);
      if (!isNamedByContract) assert.equal(operation.operationId, other.operationId, place);
      const parameters = parametersOf(operation);
      for (const [name, type] of Object.entries(parametersOf(other)))
        assert.equal(parameters[name], type, `${place}: ${name}`);
      const bodies = operation.requestBody?.content ?? {};
      for (const [type, body] of Object.entries(other.requestBody?.content ?? {}))
        assert.deepEqual(bodies[type], body, place);
      for (const [status, answer] of Object.entries(other.responses)) {
        const ours = operation.responses[status];
        assert.ok(ours && 'description' in ours && 'description' in answer, `${place}: ${status}`);
        assert.deepEqual(ours.content, answer.content, place);
      }
    }
  });

  test('describes the members of components as the reference does, with the differences listed here', {
    skip: missing,
  }, () => {
    const found: Record<string, string[]> = {};
    const others = recorded().components.schemas;
    for (const [name, schema] of Object.entries(document.components.schemas)) {
      const members = Object.entries(others[name]?.properties ?? {});
      const different = members.filter(
        ([member, other]) => !isSame(memberFacts(schema.properties?.[member]), memberFacts(other)),
      );
      if (different.length > 0) found[name] = different.map(([member]) => member);
    }
    const expected = Object.entries(DIFFERENCES).map(([name, reasons]) => [name, Object.keys(reasons)]);
    assert.deepEqual(found, Object.fromEntries(expected));
  });
});
