/** Lets a number of things be done at once, and the others wait for their turn in the order in which they came. */
export class Limiter {
  #free: number;
  readonly #waiting: (() => void)[] = [];

  /** @param atOnce how many */
  constructor(atOnce: number) {
    this.#free = atOnce;
  }

  async run<T>(work: () => Promise<T>): Promise<T> {
    if (this.#free > 0) this.#free -= 1;
    else await new Promise<void>((begin) => this.#waiting.push(begin));
    try {
      return await work();
    } finally {
      const next = this.#waiting.shift();
      if (next === undefined) this.#free += 1;
      else next();
    }
  }
}
