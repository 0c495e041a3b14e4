import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { type Bench, openBench } from '../instances/bench.ts';
import { type Address, addressesOf, pathOf } from './routes.ts';
import { send } from './send.ts';
import { CALLERS, type CallerName, makePeople, makeWorld, type World } from './world.ts';

/** Objects that a caller may open though no list of the caller's shows them, and why. */
const UNLISTED_BUT_OPEN: readonly RegExp[] = [
  // sign-up lists nobody; every account may look at every other (`accounts.md`)
  /^\/api\/v1\/users\/\d+\/$/,
  // the lists of files and link files of one folder are asked for known folders only
  /^\/api\/v1\/filebrowser\/(linkfiles\/|files\/)?\d+\/$/,
];
/** Administrators open everything, and list what is their own here and there. */
const OPENS_EVERYTHING: readonly CallerName[] = ['administrator'];

let bench: Bench;
let world: World;
let lists: readonly Address[];
before(async () => {
  bench = await openBench();
  const people = await makePeople(bench);
  // two of everything: one feed stays with its owner
  const unshared = await makeWorld(bench, people);
  await bench.database.deleteFrom('feed_user_permission').where('feed_id', '=', unshared.idFor('{id}/')).execute();
  world = await makeWorld(bench, people);
  lists = addressesOf(bench.services).filter(({ route }) => route.kind === 'list');
});
after(() => bench.close());

async function get(path: string, caller: CallerName): Promise<{ status: number; text: string }> {
  return send(bench.url, 'GET', path, { headers: { accept: 'application/json', ...world.callers[caller] } });
}

/** The paths of the objects that a list shows, and of those that these are linked with. */
async function shownIn(pattern: string, caller: CallerName): Promise<readonly string[]> {
  const { status, text } = await get(`${pathOf(pattern, world)}?limit=1000&path=`, caller);
  if (status !== 200) return [];
  const results: readonly { url: string; file_resource?: string }[] = JSON.parse(text).results;
  const urls = results.flatMap(({ url, file_resource }) => (file_resource ? [url, file_resource] : [url]));
  return urls.map((url) => new URL(url).pathname);
}

async function shownTo(caller: CallerName): Promise<ReadonlySet<string>> {
  const shown = new Set<string>();
  for (const { pattern } of lists) for (const path of await shownIn(pattern, caller)) shown.add(path);
  return shown;
}

test('nothing that a list shows is refused when it is opened, and nothing that lists hide is open', async () => {
  const shown = new Map<CallerName, ReadonlySet<string>>();
  for (const caller of CALLERS) shown.set(caller, await shownTo(caller));
  const known = new Set([...shown.values()].flatMap((paths) => [...paths]));
  assert.ok(known.size > 50, `only ${known.size} objects were found`);
  for (const caller of CALLERS) {
    for (const path of known) {
      const { status } = await get(path, caller);
      if (shown.get(caller)?.has(path)) assert.equal(status, 200, `${caller} is shown ${path}`);
      else if (!OPENS_EVERYTHING.includes(caller) && !UNLISTED_BUT_OPEN.some((pattern) => pattern.test(path)))
        assert.ok([401, 403].includes(status), `${caller} is not shown ${path}, which answers ${status}`);
    }
  }
});
