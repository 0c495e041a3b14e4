/** What was measured, as a table of Markdown that is also readable as it is. */
import { availableParallelism } from 'node:os';

export interface Row {
  readonly what: string;
  readonly ours: string;
  /** – where there is nothing to compare with. */
  readonly bare: string;
  /** A ratio, or a number with its unit. */
  readonly result: string;
  readonly aim: string;
}

const HEADINGS = ['What', 'Hypercube', 'Beside it', 'Result', 'Aim'];

export function table(rows: readonly Row[]): string {
  const cells = [HEADINGS, ...rows.map(({ what, ours, bare, result, aim }) => [what, ours, bare, result, aim])];
  const widths = HEADINGS.map((_, column) => Math.max(...cells.map((line) => line[column]?.length ?? 0)));
  const [head = '', ...lines] = cells.map(
    (line) => `| ${line.map((cell, column) => cell.padEnd(widths[column] ?? 0)).join(' | ')} |`,
  );
  const rule = `|${widths.map((width) => '-'.repeat(width + 2)).join('|')}|`;
  return [head, rule, ...lines].join('\n');
}

export function report(rows: readonly Row[]): string {
  return `# Results

Written by \`npm run bench\` on a machine with ${availableParallelism()} processor cores, which the server, PostgreSQL, the bare handlers and
the clients share. [README.md](README.md) says what is measured.

${table(rows)}
`;
}
