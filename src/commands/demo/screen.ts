/**
 * What the demo shows. On a terminal the step at work is redrawn in place; elsewhere, or with NO_COLOR, plain lines follow
 * one another.
 */
import { stripVTControlCharacters, styleText } from 'node:util';

export interface Step {
  /** Says how far the step is, in a few words beside its name; seen on a terminal only. */
  progress(words: string): void;
  /** Replaces the lines below the step. */
  lines(lines: readonly string[]): void;
}

type Style = 'green' | 'red' | 'yellow' | 'cyan' | 'dim' | 'bold';

export interface Terminal {
  readonly isTTY?: boolean;
  readonly columns?: number;
  write(text: string): unknown;
}

const NAME_WIDTH = 12;
const SPINNER = ['⠋', '⠙', '⠹', '⠸', '⠼', '⠴', '⠦', '⠧', '⠇', '⠏'];
const REDRAW_MILLISECONDS = 80;

export class Screen {
  readonly #terminal: Terminal;
  readonly #isPlain: boolean;
  /** Rows of the block that the next drawing replaces. */
  #rows = 0;

  constructor(terminal: Terminal, environment: Readonly<Record<string, string | undefined>>) {
    this.#terminal = terminal;
    this.#isPlain = terminal.isTTY !== true || Boolean(environment.NO_COLOR) || environment.TERM === 'dumb';
  }

  say(line = ''): void {
    this.#terminal.write(`${line}\n`);
  }

  style(style: Style, text: string): string {
    return this.#isPlain ? text : styleText(style, text, { validateStream: false });
  }

  /** Shows a step while `work` is at it, then its outcome in words, and the time that it took. */
  async step<Outcome>(
    name: string,
    work: (step: Step) => Promise<{ readonly words: string; readonly outcome: Outcome }>,
  ): Promise<Outcome> {
    const startedAt = performance.now();
    let progress = '';
    let below: readonly string[] = [];
    let frame = 0;
    const draw = () => {
      const sign = this.style('cyan', SPINNER[frame++ % SPINNER.length] ?? '');
      this.#redraw([`  ${sign} ${name.padEnd(NAME_WIDTH)} ${progress}`, ...below]);
    };
    const timer = this.#isPlain ? undefined : setInterval(draw, REDRAW_MILLISECONDS);
    const finish = (sign: string, words: string) => {
      clearInterval(timer);
      const seconds = this.style('dim', formatSeconds(performance.now() - startedAt));
      this.#redraw([`  ${sign} ${name.padEnd(NAME_WIDTH)} ${words}  ${seconds}`, ...(this.#isPlain ? [] : below)]);
      this.#rows = 0;
    };
    try {
      const { words, outcome } = await work({
        progress: (words) => {
          progress = words;
        },
        lines: (lines) => {
          if (this.#isPlain) {
            if (below.length === 0) this.say(`  … ${name}`);
            for (const line of lines) if (!below.includes(line)) this.say(line);
          }
          below = lines;
        },
      });
      finish(this.style('green', '✓'), words);
      return outcome;
    } catch (error) {
      finish(this.style('red', '✗'), 'failed');
      throw error;
    }
  }

  #redraw(lines: readonly string[]): void {
    // Some terminals say that they have 0 columns.
    const columns = this.#terminal.columns || 80;
    const up = this.#rows > 0 ? `\x1b[${this.#rows}A\r\x1b[J` : '';
    this.#terminal.write(`${up}${lines.join('\n')}\n`);
    this.#rows = lines.reduce(
      (rows, line) => rows + Math.max(1, Math.ceil(stripVTControlCharacters(line).length / columns)),
      0,
    );
  }
}

export function formatSeconds(milliseconds: number): string {
  return `${(milliseconds / 1000).toFixed(milliseconds < 10_000 ? 2 : 1)} s`;
}

/** Decimal units, as file managers show them. */
export function formatBytes(bytes: number): string {
  if (bytes < 1000) return `${bytes} B`;
  if (bytes < 1e6) return `${(bytes / 1e3).toFixed(1)} kB`;
  return bytes < 1e9 ? `${(bytes / 1e6).toFixed(1)} MB` : `${(bytes / 1e9).toFixed(1)} GB`;
}

export function progressBar(done: number, total: number, width = 24): string {
  const filled = total === 0 ? width : Math.round((Math.min(done, total) / total) * width);
  return `${'█'.repeat(filled)}${'░'.repeat(width - filled)}`;
}
