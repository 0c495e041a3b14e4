/** Reading a plugin from a plugin store, which answers in Collection+JSON (`plugins.md` section 5.5). */
import { InvalidFields, invalidObject } from '../hypermedia/errors.ts';
import { isHttpUrl } from '../hypermedia/input.ts';
import { type PluginDescriptor, parseDescriptor } from './descriptor.ts';
import { isObject } from './parameters.ts';

const TIMEOUT_SECONDS = 30;
const LARGEST_ANSWER_BYTES = 4 * 1024 * 1024;
const PAGE_SIZE = 50;
/** More parameters than any program has. */
const MOST_PAGES = 40;

/** What a store answers: each item's data by name, and the addresses that links lead to, by relation. */
interface Collection {
  readonly items: readonly Item[];
  readonly links: ReadonlyMap<string, string>;
}

interface Item {
  readonly data: Readonly<Record<string, unknown>>;
  readonly links: ReadonlyMap<string, string>;
}

function refused(problem: string): InvalidFields {
  return invalidObject(`The plugin cannot be read from that store address: ${problem}.`);
}

function objectsOf(value: unknown): readonly Readonly<Record<string, unknown>>[] {
  return Array.isArray(value) ? value.filter(isObject) : [];
}

function linksOf(value: unknown): ReadonlyMap<string, string> {
  const pairs = objectsOf(value).flatMap(({ rel, href }) =>
    typeof rel === 'string' && typeof href === 'string' ? [[rel, href] as const] : [],
  );
  return new Map(pairs);
}

function dataOf(value: unknown): Readonly<Record<string, unknown>> {
  return Object.fromEntries(
    objectsOf(value).flatMap(({ name, value: one }) => (typeof name === 'string' ? [[name, one]] : [])),
  );
}

function readCollection(text: string): Collection {
  const document = parse(text);
  const collection = isObject(document) ? document.collection : undefined;
  if (!isObject(collection)) throw refused('the answer is not a Collection+JSON document');
  if (collection.error !== undefined) throw refused('the store answers with an error');
  const items = objectsOf(collection.items).map((item) => ({ data: dataOf(item.data), links: linksOf(item.links) }));
  return { items, links: linksOf(collection.links) };
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw refused('the answer is not JSON');
  }
}

async function readBounded(response: Response): Promise<string> {
  const chunks: Uint8Array[] = [];
  let sizeBytes = 0;
  for await (const chunk of response.body ?? []) {
    sizeBytes += chunk.length;
    if (sizeBytes > LARGEST_ANSWER_BYTES) throw refused(`the answer is larger than ${LARGEST_ANSWER_BYTES} bytes`);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString('utf8');
}

/** The network's own words stay here: they would tell what else there is to be reached from this machine. */
async function ask(address: string, deadline: AbortSignal): Promise<Collection> {
  if (!isHttpUrl(address)) throw refused('it leads to an address that is not an http or https URL');
  try {
    const response = await fetch(address, {
      headers: { accept: 'application/vnd.collection+json' },
      signal: deadline,
    });
    if (!response.ok) throw refused(`the store answers with status ${response.status}`);
    return readCollection(await readBounded(response));
  } catch (error) {
    if (error instanceof InvalidFields) throw error;
    throw refused(deadline.aborted ? `no complete answer came within ${TIMEOUT_SECONDS} s` : 'nobody answers there');
  }
}

async function readParameters(address: string, deadline: AbortSignal): Promise<readonly unknown[]> {
  const parameters: unknown[] = [];
  for (let page = 0; page < MOST_PAGES; page++) {
    const url = new URL(address);
    url.searchParams.set('limit', String(PAGE_SIZE));
    url.searchParams.set('offset', String(page * PAGE_SIZE));
    const { items, links } = await ask(url.href, deadline);
    parameters.push(...items.map((item) => item.data));
    if (!links.has('next')) return parameters;
  }
  throw refused(`the plugin has more than ${MOST_PAGES * PAGE_SIZE} parameters`);
}

/** A store's plugin is either right as a whole or refused as a whole. */
function parsePlugin(value: unknown): PluginDescriptor {
  try {
    return parseDescriptor(value, 'store');
  } catch (error) {
    if (error instanceof InvalidFields) throw refused(`the store describes it wrongly (${error.message})`);
    throw error;
  }
}

/** @param address an http or https URL @throws {InvalidFields} under `non_field_errors`, whatever the reason is */
export async function readStorePlugin(address: string): Promise<PluginDescriptor> {
  const deadline = AbortSignal.timeout(TIMEOUT_SECONDS * 1000);
  const { items } = await ask(address, deadline);
  const [found] = items;
  if (!found) throw refused('there is no plugin');
  const parametersAddress = found.links.get('parameters');
  if (parametersAddress === undefined || !URL.canParse(parametersAddress))
    throw refused('the plugin has no link to its parameters');
  return parsePlugin({ ...found.data, parameters: await readParameters(parametersAddress, deadline) });
}
