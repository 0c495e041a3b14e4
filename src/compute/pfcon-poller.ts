/**
 * Asks a compute service about all watched jobs of one resource: soon after they began, then more and more seldom, a few at a
 * time, by one timer. While the service does not answer, all of them wait.
 */
import type { JobStatus, Watch } from './engine.ts';
import { hasEnded } from './engine.ts';

const SHORTEST_PAUSE_MILLISECONDS = 100;
const LONGEST_PAUSE_MILLISECONDS = 3000;
const GROWTH = 1.5;
const PARALLEL = 4;

export interface Watched {
  /** The present state; null when the service knows no such job. Throws when it does not answer. */
  ask(): Promise<JobStatus | null>;
  /** Called once when the job has ended or is not known. */
  changed(): void;
}

interface Entry {
  readonly watched: Watched;
  pauseMilliseconds: number;
  dueAt: number;
}

export class PfconPoller {
  readonly #entries = new Set<Entry>();
  #timer: NodeJS.Timeout | undefined;
  #isAsking = false;

  add(watched: Watched): Watch {
    const pauseMilliseconds = SHORTEST_PAUSE_MILLISECONDS;
    const entry = { watched, pauseMilliseconds, dueAt: Date.now() + pauseMilliseconds };
    this.#entries.add(entry);
    this.#schedule();
    return {
      stop: () => {
        this.#entries.delete(entry);
        this.#schedule();
      },
    };
  }

  close(): void {
    this.#entries.clear();
    clearTimeout(this.#timer);
  }

  #schedule(): void {
    clearTimeout(this.#timer);
    if (this.#isAsking || this.#entries.size === 0) return;
    const next = Math.min(...[...this.#entries].map(({ dueAt }) => dueAt));
    this.#timer = setTimeout(() => this.#round(), Math.max(0, next - Date.now()));
  }

  async #round(): Promise<void> {
    this.#isAsking = true;
    const now = Date.now();
    const due = [...this.#entries].filter(({ dueAt }) => dueAt <= now).sort((one, other) => one.dueAt - other.dueAt);
    for (let at = 0; at < due.length; at += PARALLEL) {
      const answered = await Promise.all(due.slice(at, at + PARALLEL).map((entry) => this.#ask(entry)));
      if (answered.includes(false)) {
        for (const entry of due.slice(at + PARALLEL)) this.#postpone(entry);
        break;
      }
    }
    this.#isAsking = false;
    this.#schedule();
  }

  /** False when the service does not answer. */
  async #ask(entry: Entry): Promise<boolean> {
    if (!this.#entries.has(entry)) return true;
    let status: JobStatus | null;
    try {
      status = await entry.watched.ask();
    } catch {
      // Whoever wants to know why asks himself: the job goes on meanwhile.
      this.#postpone(entry);
      return false;
    }
    if (status !== null && !hasEnded(status)) this.#postpone(entry);
    else if (this.#entries.delete(entry)) entry.watched.changed();
    return true;
  }

  #postpone(entry: Entry): void {
    entry.pauseMilliseconds = Math.min(entry.pauseMilliseconds * GROWTH, LONGEST_PAUSE_MILLISECONDS);
    entry.dueAt = Date.now() + entry.pauseMilliseconds;
  }
}
