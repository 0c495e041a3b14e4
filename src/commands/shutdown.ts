/** When a process of the server ends: at a signal of the operator, or because something it needs was lost. */

/** Presses within this time are one: npm passes Ctrl-C on to a program that got it from the terminal already. */
const SAME_SIGNAL_MILLISECONDS = 500;

export interface Ending {
  /** Set when the process ends because of a fault. */
  readonly error: Error | null;
}

export class Shutdown {
  /** Fulfilled when the process shall end. */
  readonly requested: Promise<Ending>;
  readonly #request: (ending: Ending) => void;
  #requestedAt: number | null = null;

  constructor() {
    const { promise, resolve } = Promise.withResolvers<Ending>();
    this.requested = promise;
    this.#request = resolve;
    for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => this.#onSignal(signal));
  }

  /** Ends the process with status 1, in order as far as it goes. */
  readonly fail = (error: Error): void => {
    this.#requestedAt ??= Date.now();
    this.#request({ error });
  };

  #onSignal(signal: 'SIGINT' | 'SIGTERM'): void {
    if (this.#requestedAt === null) {
      this.#requestedAt = Date.now();
      this.#request({ error: null });
    } else if (Date.now() - this.#requestedAt > SAME_SIGNAL_MILLISECONDS) {
      process.exit(signal === 'SIGINT' ? 130 : 143);
    }
  }
}
