/** `npm run bench -- [lists] [transfers] [jobs]`: measures, prints a table and writes it to `results.md`. README.md says what. */
import { writeFile } from 'node:fs/promises';
import { measureJobs } from './jobs.ts';
import { measureLists } from './lists.ts';
import { openWorld, type World } from './processes.ts';
import { type Row, report, table } from './report.ts';
import { measureTransfers } from './transfers.ts';

type Part = (world: World) => Promise<Row[]>;

/** The memory that transfers take is told best while nothing else has taken any. */
const PARTS: ReadonlyMap<string, Part> = new Map([
  ['transfers', measureTransfers],
  ['lists', measureLists],
  ['jobs', measureJobs],
]);

/** @throws for a word that names no part */
function chosenParts(words: readonly string[]): readonly [string, Part][] {
  const unknown = words.find((word) => !PARTS.has(word));
  if (unknown !== undefined) throw new Error(`"${unknown}" is no part; ${[...PARTS.keys()].join(', ')} are.`);
  return [...PARTS].filter(([name]) => words.length === 0 || words.includes(name));
}

const parts = chosenParts(process.argv.slice(2));
process.stderr.write('starting the server\n');
const world = await openWorld();
const rows: Row[] = [];
try {
  for (const [name, measure] of parts) {
    process.stderr.write(`measuring ${name}\n`);
    const measured = await measure(world);
    process.stderr.write(`${table(measured)}\n`);
    rows.push(...measured);
  }
} finally {
  await world.close();
}
console.log(`\n${table(rows)}`);
if (parts.length === PARTS.size) await writeFile(new URL('results.md', import.meta.url), report(rows));
