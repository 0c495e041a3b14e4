/** When a process of the server ends: at a signal of the operator, or because something it needs was lost. */

/** What stopping may take beyond the time that requests and jobs get. */
export const STOP_MARGIN_SECONDS = 30;

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
  readonly #limitSeconds: number;
  #requestedAt: number | null = null;

  /** @param limitSeconds after which the process ends even if not everything has stopped */
  constructor(limitSeconds: number) {
    this.#limitSeconds = limitSeconds;
    const { promise, resolve } = Promise.withResolvers<Ending>();
    this.requested = promise;
    this.#request = resolve;
    for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => this.#onSignal(signal));
    // as when a library loses its connection to the database: stop in order, and let the next start go on
    process.on('unhandledRejection', (reason) =>
      this.fail(reason instanceof Error ? reason : new Error(String(reason))),
    );
  }

  /** Ends the process with status 1, in order as far as it goes. */
  readonly fail = (error: Error): void => {
    this.#begin({ error });
  };

  #begin(ending: Ending): void {
    if (this.#requestedAt !== null) return;
    this.#requestedAt = Date.now();
    this.#request(ending);
    setTimeout(() => {
      process.stderr.write(
        `hypercube: not everything has stopped within ${this.#limitSeconds} s; ending all the same\n`,
      );
      process.exit(1);
    }, this.#limitSeconds * 1000).unref();
  }

  #onSignal(signal: 'SIGINT' | 'SIGTERM'): void {
    if (this.#requestedAt === null) {
      this.#begin({ error: null });
    } else if (Date.now() - this.#requestedAt > SAME_SIGNAL_MILLISECONDS) {
      process.exit(signal === 'SIGINT' ? 130 : 143);
    }
  }
}
