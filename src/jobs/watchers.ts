/**
 * What this process waits for: the end of phases on compute resources, and moments at which to look again. Nothing here is
 * needed after a crash: the instance says which process watches it, and when that one is gone, another takes over.
 */
import type { Engine, Job, Phase, Watch } from '../compute/engine.ts';

/** Seconds between two looks at a running phase; between those the engine tells of its end. */
const SHORTEST_LOOK_SECONDS = 5;
const LONGEST_LOOK_SECONDS = 60;

/** Seconds before a service that did not answer is asked again: 1, 2, 4, … */
const LONGEST_PAUSE_SECONDS = 60;

interface Entry {
  readonly watch: Watch | null;
  readonly timer: NodeJS.Timeout;
}

export class Watchers {
  readonly #entries = new Map<number, Entry>();
  /** How often in a row a service did not answer for an instance. */
  readonly #silences = new Map<number, number>();
  readonly #advance: (instanceId: number) => void;

  /** @param advance has the next step of an instance taken; must not throw */
  constructor(advance: (instanceId: number) => void) {
    this.#advance = advance;
  }

  /** Waits for the end of a phase, and looks at it from time to time. */
  watch(instanceId: number, engine: Engine, phase: Phase, job: Job, phaseSeconds: number): void {
    this.#silences.delete(instanceId);
    const left = job.maxExecutionSeconds === null ? Infinity : job.maxExecutionSeconds - phaseSeconds + 0.1;
    const look = Math.min(Math.max(phaseSeconds / 2, SHORTEST_LOOK_SECONDS), LONGEST_LOOK_SECONDS);
    this.stop(instanceId);
    const timer = this.#timer(instanceId, Math.max(0.1, Math.min(left, look)));
    this.#entries.set(instanceId, {
      watch: engine.watch(phase, job, () => this.#fire(instanceId)),
      timer,
    });
  }

  /** Advances the instance later, since the service did not answer. */
  askAgain(instanceId: number): void {
    const silences = this.silences(instanceId);
    this.#silences.set(instanceId, silences + 1);
    this.stop(instanceId);
    const timer = this.#timer(instanceId, Math.min(2 ** silences, LONGEST_PAUSE_SECONDS));
    this.#entries.set(instanceId, { watch: null, timer });
  }

  /** How often in a row a service has not answered for an instance. */
  silences(instanceId: number): number {
    return this.#silences.get(instanceId) ?? 0;
  }

  stop(instanceId: number): void {
    const entry = this.#entries.get(instanceId);
    if (entry === undefined) return;
    this.#entries.delete(instanceId);
    clearTimeout(entry.timer);
    entry.watch?.stop();
  }

  /** Stops waiting for all but these. */
  keepOnly(instanceIds: ReadonlySet<number>): void {
    for (const id of this.watched()) if (!instanceIds.has(id)) this.forget(id);
  }

  /** Ids of the instances that something is waited for. */
  watched(): number[] {
    return [...this.#entries.keys()];
  }

  /** An instance that has left its phase. */
  forget(instanceId: number): void {
    this.stop(instanceId);
    this.#silences.delete(instanceId);
  }

  close(): void {
    for (const id of this.watched()) this.forget(id);
  }

  #timer(instanceId: number, seconds: number): NodeJS.Timeout {
    return setTimeout(() => this.#fire(instanceId), seconds * 1000);
  }

  #fire(instanceId: number): void {
    this.stop(instanceId);
    this.#advance(instanceId);
  }
}
