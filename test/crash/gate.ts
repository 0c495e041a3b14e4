/** Lets work begin only while the server is there, and tells work that the server cut off from work that it did badly. */
import type { Answer } from '../helpers/client.ts';

/** What becomes of a request: its answer, or null when the server was killed before all of it had come. */
export type Outcome = Answer | null;

export class Gate {
  #isOpen = false;
  #opened = Promise.withResolvers<void>();
  readonly #working = new Set<Promise<void>>();
  #isFinished = false;
  readonly failures: unknown[] = [];

  /** Whether requests may fail because the server is being killed. */
  get mayFail(): boolean {
    return !this.#isOpen;
  }

  open(): void {
    this.#isOpen = true;
    this.#opened.resolve();
  }

  /** From now on no work begins, and that which runs may be cut off. */
  shut(): void {
    if (!this.#isOpen) return;
    this.#isOpen = false;
    this.#opened = Promise.withResolvers();
  }

  /** Waits until all that was running has ended. */
  async idle(): Promise<void> {
    while (this.#working.size > 0) await Promise.all(this.#working);
  }

  /** Lets no further work begin, ever. */
  finish(): void {
    this.#isFinished = true;
    this.#opened.resolve();
  }

  /** Does work again and again, whenever the gate is open, until it answers false or the test is over. */
  async repeat(work: () => Promise<boolean>): Promise<void> {
    for (;;) {
      await this.#opened.promise;
      if (this.#isFinished) return;
      if (!this.#isOpen) continue;
      const goesOn = work();
      const ended = goesOn.then(
        () => undefined,
        (error: unknown) => void this.failures.push(error),
      );
      this.#working.add(ended);
      await ended;
      this.#working.delete(ended);
      if (this.failures.length > 0 || !(await goesOn)) return;
    }
  }

  /** @throws whatever made the request fail, unless the server may have been killed */
  async ask(request: Promise<Answer>, expected: number): Promise<Outcome> {
    let answer: Answer;
    try {
      answer = await request;
    } catch (error) {
      if (this.#isOpen) throw new Error('the server broke a connection though nobody had killed it', { cause: error });
      return null;
    }
    if (answer.status === expected) return answer;
    // Its database may have been killed first.
    if (answer.status >= 500 && !this.#isOpen) return null;
    throw new Error(`expected ${expected}, the answer was ${answer.status}: ${answer.text.slice(0, 1000)}`);
  }
}
