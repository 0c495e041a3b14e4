/** A log file that keeps the last part of what is written to it and never grows past twice that. */
import { closeSync, openSync, renameSync, writeSync } from 'node:fs';

export class BoundedLog {
  readonly #path: string;
  readonly #limitBytes: number;
  #file: number;
  #sizeBytes = 0;
  /** The end of the log, at least `limitBytes` of it if there are so many. */
  #tail: Buffer[] = [];
  #tailBytes = 0;

  constructor(path: string, limitBytes: number) {
    this.#path = path;
    this.#limitBytes = limitBytes;
    this.#file = openSync(path, 'w', 0o600);
  }

  write(chunk: Buffer): void {
    this.#remember(chunk);
    if (this.#sizeBytes + chunk.length > 2 * this.#limitBytes) {
      this.#startAgain();
    } else {
      writeSync(this.#file, chunk);
      this.#sizeBytes += chunk.length;
    }
  }

  close(): void {
    closeSync(this.#file);
  }

  #remember(chunk: Buffer): void {
    this.#tail.push(chunk);
    this.#tailBytes += chunk.length;
    while (this.#tail[0] && this.#tailBytes - this.#tail[0].length >= this.#limitBytes) {
      this.#tailBytes -= this.#tail[0].length;
      this.#tail.shift();
    }
  }

  /** Begins a new file with the end of the old one; readers see the one or the other. */
  #startAgain(): void {
    const end = Buffer.concat(this.#tail).subarray(-this.#limitBytes);
    const next = `${this.#path}.next`;
    closeSync(this.#file);
    this.#file = openSync(next, 'w', 0o600);
    writeSync(this.#file, end);
    renameSync(next, this.#path);
    this.#sizeBytes = end.length;
  }
}
