/** Least, greatest and mean value of everything that was added; not-a-number and infinite values do not count. */
export interface Statistics {
  readonly minimum: number;
  readonly maximum: number;
  readonly mean: number;
}

export class RunningStatistics {
  #count = 0;
  #sum = 0;
  #minimum = Number.POSITIVE_INFINITY;
  #maximum = Number.NEGATIVE_INFINITY;

  add(values: Iterable<number>): void {
    for (const value of values) {
      if (!Number.isFinite(value)) continue;
      this.#count++;
      this.#sum += value;
      if (value < this.#minimum) this.#minimum = value;
      if (value > this.#maximum) this.#maximum = value;
    }
  }

  /** Null when nothing was added. */
  result(): Statistics | null {
    if (this.#count === 0) return null;
    return { minimum: this.#minimum, maximum: this.#maximum, mean: this.#sum / this.#count };
  }
}
