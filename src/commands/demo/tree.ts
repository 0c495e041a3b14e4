/** Draws the plugin instances of a feed as a tree. */

export interface Instance {
  readonly url: string;
  readonly id: number;
  /** Absent at the root. */
  readonly previous_id?: number;
  readonly plugin_name: string;
  readonly plugin_version: string;
  readonly feed_id: number;
  readonly status: string;
  readonly active: boolean;
  readonly error_code: string;
  readonly start_date: string;
  readonly end_date: string;
  readonly output_path: string;
  readonly raw: string;
}

type Paint = (style: 'green' | 'red' | 'yellow' | 'dim', text: string) => string;

/** One line an instance, children below their parents in the order of their making. */
export function drawTree(instances: readonly Instance[], paint: Paint): string[] {
  const ordered = instances.toSorted((a, b) => a.id - b.id);
  const ids = new Set(ordered.map(({ id }) => id));
  const isRoot = ({ previous_id }: Instance) => previous_id === undefined || !ids.has(previous_id);
  const below = (parent: number) => ordered.filter(({ previous_id }) => previous_id === parent);
  const lines: [branch: string, instance: Instance][] = [];
  const visit = (siblings: readonly Instance[], indent: string, isTop: boolean) => {
    for (const [index, instance] of siblings.entries()) {
      const isLast = index === siblings.length - 1;
      lines.push([isTop ? '' : `${indent}${isLast ? '└─ ' : '├─ '}`, instance]);
      visit(below(instance.id), isTop ? '' : `${indent}${isLast ? '   ' : '│  '}`, false);
    }
  };
  visit(ordered.filter(isRoot), '', true);
  const names = lines.map(([branch, { plugin_name, plugin_version }]) => `${branch}${plugin_name} ${plugin_version}`);
  const width = Math.max(0, ...names.map((name) => name.length));
  return lines.map(([, instance], index) => {
    const status = paint(styleOf(instance.status), instance.status);
    const code = instance.error_code === '' ? '' : ` ${instance.error_code}`;
    return `      ${(names[index] ?? '').padEnd(width)}  ${status}${code}`;
  });
}

function styleOf(status: string): 'green' | 'red' | 'yellow' | 'dim' {
  if (status === 'finishedSuccessfully') return 'green';
  if (status === 'finishedWithError' || status === 'cancelled') return 'red';
  return status === 'waiting' || status === 'created' ? 'dim' : 'yellow';
}
