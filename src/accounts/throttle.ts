/** Slows down guessing of passwords: failures are counted for each pair of user name and address, and for each address. */
import { createHash } from 'node:crypto';
import { RateLimiterMemory, RateLimiterRes } from 'rate-limiter-flexible';
import { TooManyRequests } from '../hypermedia/errors.ts';

const WINDOW_SECONDS = 300;
/** Generous enough for a person, a shared address and a test suite; far too few for guessing. */
const FAILURES_OF_A_USER = 20;
const FAILURES_OF_AN_ADDRESS = 1000;

/** A name can be as long as a request body, and is kept for as long as the window; so its hash is. */
function keyOf(username: string, address: string): string {
  return createHash('sha256')
    .update(JSON.stringify([username, address]))
    .digest('base64');
}

export class LoginThrottle {
  readonly #byUser = new RateLimiterMemory({ points: FAILURES_OF_A_USER, duration: WINDOW_SECONDS });
  readonly #byAddress = new RateLimiterMemory({ points: FAILURES_OF_AN_ADDRESS, duration: WINDOW_SECONDS });

  /** @throws {TooManyRequests} when too many log-ins have failed */
  async check(username: string, address: string): Promise<void> {
    const states = await Promise.all([this.#byUser.get(keyOf(username, address)), this.#byAddress.get(address)]);
    const spent = states.find((state) => state !== null && state.remainingPoints <= 0);
    if (!spent) return;
    const seconds = Math.ceil(spent.msBeforeNext / 1000);
    throw new TooManyRequests(`Too many failed log-ins. Try again in ${seconds} seconds.`, seconds);
  }

  async countFailure(username: string, address: string): Promise<void> {
    for (const [limiter, key] of [
      [this.#byUser, keyOf(username, address)],
      [this.#byAddress, address],
    ] as const) {
      await limiter.consume(key).catch((refusal: unknown) => {
        if (!(refusal instanceof RateLimiterRes)) throw refusal;
      });
    }
  }
}
