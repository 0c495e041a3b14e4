/** Waits for the end of a container through the engine's own wait call; a lost connection is opened again. */
import { setTimeout as sleep } from 'node:timers/promises';
import type { Container } from 'dockerode';
import { answeredStatus } from './container-client.ts';
import type { Watch } from './engine.ts';

const SHORTEST_PAUSE_MILLISECONDS = 200;
const LONGEST_PAUSE_MILLISECONDS = 5000;

/** Calls `changed` once when the container has ended or is not there, unless stopped before. */
export function watchContainer(container: Container, changed: () => void): Watch {
  const stopping = new AbortController();
  void waitForEnd(container, stopping.signal, changed);
  return { stop: () => stopping.abort() };
}

async function waitForEnd(container: Container, signal: AbortSignal, changed: () => void): Promise<void> {
  let pause = SHORTEST_PAUSE_MILLISECONDS;
  while (!signal.aborted) {
    try {
      await container.wait({ condition: 'not-running', abortSignal: signal });
      break;
    } catch (error) {
      if (answeredStatus(error) === 404) break;
      await sleep(pause, undefined, { signal }).catch(() => {});
      pause = Math.min(2 * pause, LONGEST_PAUSE_MILLISECONDS);
    }
  }
  if (!signal.aborted) changed();
}
