/** Trees of 20 plugin instances, one after the other, and what has to come of them. */
import assert from 'node:assert/strict';
import { setTimeout as pause } from 'node:timers/promises';
import type { Request } from '../helpers/client.ts';
import type { Gate } from './gate.ts';
import type { Random } from './random.ts';

/** Where each instance of a tree stands: the root, four children, three children of each, two below one of those. */
const PARENTS: readonly (number | null)[] = [null, 0, 0, 0, 0, 1, 1, 1, 2, 2, 2, 3, 3, 3, 4, 4, 4, 5, 5];
/** The twentieth joins these. */
const JOINED: readonly number[] = [17, 8, 11];
export const TREE_SIZE = PARENTS.length + 1;

const POLL_MILLISECONDS = 50;

export interface ForestOptions {
  readonly request: Request;
  readonly token: string;
  readonly gate: Gate;
  readonly random: Random;
  /** Ids of the plugins. */
  readonly plugins: { readonly root: number; readonly copy: number; readonly join: number };
  /** Storage path of the folder that all trees begin with, and the text of each file in it by relative path. */
  readonly input: { readonly path: string; readonly files: Readonly<Record<string, string>> };
}

interface Planned {
  readonly title: string;
  readonly tree: number;
  readonly index: number;
  /** null: it is not known whether the server has made it. */
  id: number | null;
  /** Text of each file, by path below the output folder. */
  readonly expected: Readonly<Record<string, string>>;
}

export interface ListedInstance {
  readonly id: number;
  readonly title: string;
  readonly status: string;
  readonly error_code: string;
}

export class Forest {
  readonly #options: ForestOptions;
  readonly #instances: Planned[] = [];
  #isEnding = false;

  constructor(options: ForestOptions) {
    this.#options = options;
  }

  get instances(): readonly Planned[] {
    return this.#instances;
  }

  /** Posts tree after tree, each when the one before has finished; after `end` no more. */
  grow(): Promise<void> {
    return this.#options.gate.repeat(async () => {
      if (this.#tree().length < TREE_SIZE) {
        await this.#plant();
        return true;
      }
      const listed = await this.#list();
      await pause(POLL_MILLISECONDS);
      const hasFinished = listed !== null && this.#hasFinished(listed);
      if (hasFinished && this.#isEnding) return false;
      if (hasFinished) this.#plan(0, (this.#instances.at(-1)?.tree ?? 0) + 1);
      return true;
    });
  }

  /** Lets the present tree be the last one. */
  end(): void {
    this.#isEnding = true;
  }

  /** Compares all that was acknowledged with a list of all instances, and finds out what became of requests that were cut off. */
  compare(listed: readonly ListedInstance[]): void {
    const byTitle = Map.groupBy(listed, ({ title }) => title);
    for (const planned of this.#instances) {
      const [found, ...more] = byTitle.get(planned.title) ?? [];
      byTitle.delete(planned.title);
      assert.deepEqual(more, [], `${planned.title} is there once`);
      if (planned.id !== null) assert.equal(found?.id, planned.id, `${planned.title} was acknowledged`);
      planned.id = found?.id ?? null;
      requireHealthy(found);
    }
    assert.deepEqual([...byTitle.keys()], [], 'nothing is there that was not asked for');
  }

  #tree(): Planned[] {
    const tree = this.#instances.at(-1)?.tree ?? 1;
    return this.#instances.filter((planned) => planned.tree === tree && planned.id !== null);
  }

  #hasFinished(listed: readonly ListedInstance[]): boolean {
    const status = new Map(listed.map((instance) => [instance.id, instance]));
    return this.#tree().every(({ id }) => {
      const instance = id === null ? undefined : status.get(id);
      requireHealthy(instance);
      return instance?.status === 'finishedSuccessfully';
    });
  }

  async #list(): Promise<readonly ListedInstance[] | null> {
    const { gate, request, token } = this.#options;
    const answer = await gate.ask(request('GET', '/api/v1/plugins/instances/?limit=100000', { token }), 200);
    if (answer === null) return null;
    const page: { readonly results: readonly ListedInstance[] } = JSON.parse(answer.text);
    return page.results;
  }

  /** Posts the next instance of the tree, or again the one whose request was cut off before it was made. */
  async #plant(): Promise<void> {
    const last = this.#instances.at(-1);
    const planned =
      last !== undefined && last.id === null
        ? last
        : last === undefined || last.index === TREE_SIZE - 1
          ? this.#plan(0, (last?.tree ?? 0) + 1)
          : this.#plan(last.index + 1, last.tree);
    const { gate, request, token } = this.#options;
    const { plugin, values } = this.#asked(planned);
    const answer = await gate.ask(
      request('POST', `/api/v1/plugins/${plugin}/instances/`, { token, json: { title: planned.title, ...values } }),
      201,
    );
    if (answer) planned.id = Number(answer.json.id);
  }

  #plan(index: number, tree: number): Planned {
    const planned = { title: `tree ${tree} node ${index}`, tree, index, id: null, expected: this.#expected(index) };
    this.#instances.push(planned);
    return planned;
  }

  #asked({ index }: Planned): { plugin: number; values: Readonly<Record<string, unknown>> } {
    const { plugins, input, random } = this.#options;
    if (index === 0) return { plugin: plugins.root, values: { dir: input.path } };
    if (index < PARENTS.length) {
      const values = {
        previous_id: this.#idOf(PARENTS[index] ?? 0),
        word: wordOf(index),
        pause: (random.fraction() * 0.3).toFixed(3),
      };
      return { plugin: plugins.copy, values };
    }
    const ids = JOINED.map((parent) => this.#idOf(parent));
    return { plugin: plugins.join, values: { previous_id: ids[0], plugininstances: ids.join(',') } };
  }

  #idOf(index: number): number {
    const id = this.#tree().find((planned) => planned.index === index)?.id;
    if (id == null) throw new Error(`the test has not made the instance ${index} yet`);
    return id;
  }

  #expected(index: number): Record<string, string> {
    const { input } = this.#options;
    const name = input.path.replaceAll('/', '_');
    if (index === 0) return { [`${name}.chrislink`]: input.path };
    if (index === TREE_SIZE - 1) return Object.assign({}, ...JOINED.map((parent) => this.#expected(parent)));
    const parent = PARENTS[index] ?? 0;
    const inherited =
      parent === 0
        ? Object.fromEntries(Object.entries(input.files).map(([path, text]) => [`${name}/${path}`, text]))
        : this.#expected(parent);
    return { ...inherited, [`${wordOf(index)}.txt`]: wordOf(index) };
  }
}

/** What an instance writes, and into which file. */
function wordOf(index: number): string {
  return `node-${index}`;
}

function requireHealthy(instance: ListedInstance | undefined): void {
  if (instance === undefined) return;
  const { status, title, id, error_code: code } = instance;
  assert.ok(status !== 'cancelled' && status !== 'finishedWithError', `${title} (${id}) ended as ${status} ${code}`);
}
