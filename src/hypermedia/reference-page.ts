/** The API description as one page to read: every operation, and what the components hold. No scripts. */
import { escapeHtml, pageFrame } from './html.ts';
import type {
  Answer,
  AnswerReference,
  MediaTypes,
  OpenApiDocument,
  Operation,
  Parameter,
  Schema,
} from './openapi-types.ts';

function componentName(reference: string): string {
  return reference.slice(reference.lastIndexOf('/') + 1);
}

function componentLink(reference: string): string {
  const name = escapeHtml(componentName(reference));
  return `<a href="#${name}">${name}</a>`;
}

function typeHtml(schema: Schema): string {
  if (schema.$ref !== undefined) return componentLink(schema.$ref);
  if (schema.allOf) return schema.allOf.map(typeHtml).join(' and ');
  if (schema.oneOf) return schema.oneOf.map(typeHtml).join(' or ');
  if (schema.items) return `list of ${typeHtml(schema.items)}`;
  if (schema.enum) return schema.enum.map((value) => `<code>${escapeHtml(JSON.stringify(value))}</code>`).join(' or ');
  return schema.format ? `${schema.type ?? 'any'} (${schema.format})` : (schema.type ?? 'any');
}

function rulesOf(schema: Schema): string {
  const rules = [
    schema.readOnly && 'only in answers',
    schema.writeOnly && 'only in requests',
    schema.nullable && 'may be null',
    schema.minLength !== undefined && `at least ${schema.minLength} characters`,
    schema.maxLength !== undefined && `at most ${schema.maxLength} characters`,
    schema.minimum !== undefined && `at least ${schema.minimum}`,
    schema.maximum !== undefined && `at most ${schema.maximum}`,
    schema.description,
  ];
  return escapeHtml(rules.filter((rule) => typeof rule === 'string').join('; '));
}

function table(heads: readonly string[], rows: readonly (readonly string[])[]): string {
  if (rows.length === 0) return '';
  const body = rows.map((cells) => `<tr>${cells.map((cell) => `<td>${cell}</td>`).join('')}</tr>`);
  return `<table><tr>${heads.map((head) => `<th>${head}</th>`).join('')}</tr>${body.join('')}</table>`;
}

function parametersHtml(parameters: readonly Parameter[]): string {
  const rows = parameters.map(({ name, in: place, schema }) => [
    `<code>${escapeHtml(name)}</code>`,
    place,
    typeHtml(schema),
  ]);
  return table(['Parameter', 'In', 'Type'], rows);
}

function contentHtml(content: MediaTypes): string {
  const [first] = Object.values(content);
  const types = Object.keys(content).map((type) => `<code>${escapeHtml(type)}</code>`);
  return `${first ? typeHtml(first.schema) : ''} <span class="quiet">as ${types.join(', ')}</span>`;
}

function answerRow([status, answer]: [string, Answer | AnswerReference], document: OpenApiDocument): readonly string[] {
  const found = '$ref' in answer ? document.components.responses[componentName(answer.$ref)] : answer;
  return [status, escapeHtml(found?.description ?? ''), found?.content ? contentHtml(found.content) : ''];
}

function operationHtml(path: string, method: string, operation: Operation, document: OpenApiDocument): string {
  const { operationId, summary, parameters, requestBody, security, responses } = operation;
  const isPublic = security.some((scheme) => Object.keys(scheme).length === 0);
  const body = requestBody ? `<p>Body: ${contentHtml(requestBody.content)}</p>` : '';
  const answers = Object.entries(responses).map((entry) => answerRow(entry, document));
  return `<section id="${escapeHtml(operationId)}"><h2>${escapeHtml(summary)} <small>${isPublic ? 'open to everybody' : ''}</small></h2>
<p><code><strong>${method.toUpperCase()}</strong> ${escapeHtml(path)}</code> <span class="quiet">${escapeHtml(operationId)}</span></p>
<details><summary>Parameters and answers</summary>${parametersHtml(parameters)}${body}${table(['Status', 'Meaning', 'Body'], answers)}</details></section>`;
}

function componentHtml(name: string, schema: Schema): string {
  const required = new Set(schema.required);
  const rows = Object.entries(schema.properties ?? {}).map(([member, property]) => {
    const rules = [required.has(member) && !property.readOnly ? 'required' : '', rulesOf(property)];
    return [`<code>${escapeHtml(member)}</code>`, typeHtml(property), rules.filter((rule) => rule !== '').join('; ')];
  });
  const content = rows.length === 0 ? `<p>${typeHtml(schema)}</p>` : table(['Member', 'Type', 'Rules'], rows);
  return `<section id="${escapeHtml(name)}"><h2>${escapeHtml(name)}</h2>${content}</section>`;
}

interface TaggedOperation {
  readonly tag: string;
  readonly html: string;
}

export function renderReference(document: OpenApiDocument): string {
  const operations = Object.entries(document.paths).flatMap(([path, item]) =>
    Object.entries(item).map(
      ([method, operation]): TaggedOperation => ({
        tag: operation.tags[0] ?? '',
        html: operationHtml(path, method, operation, document),
      }),
    ),
  );
  const groups = Object.entries(Object.groupBy(operations, ({ tag }) => tag)).sort(([one], [other]) =>
    one < other ? -1 : 1,
  );
  const contents = groups.map(([tag]) => `<a href="#tag-${escapeHtml(tag)}">${escapeHtml(tag)}</a>`);
  const sections = groups.map(
    ([tag, members = []]) =>
      `<h1 id="tag-${escapeHtml(tag)}">${escapeHtml(tag)}</h1>${members.map(({ html }) => html).join('')}`,
  );
  const components = Object.entries(document.components.schemas).map(([name, schema]) => componentHtml(name, schema));
  const { title, description } = document.info;
  return pageFrame(
    `${title} reference`,
    `<h1>${escapeHtml(title)} reference</h1><p>${escapeHtml(description).replace(/`([^`]*)`/g, '<code>$1</code>')}</p>
<p>The same for programs: <a href="/schema/?format=yaml">OpenAPI as YAML</a>, <a href="/schema/?format=json">as JSON</a>.</p>
<nav class="links">${contents.join('')}<a href="#components">components</a></nav>${sections.join('')}<h1 id="components">Components</h1>${components.join('')}`,
  );
}
