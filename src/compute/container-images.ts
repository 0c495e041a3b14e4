/** What the engine knows of images, remembered briefly so that a submission need not ask; pulls those that are missing. */
import type Docker from 'dockerode';
import { answeredStatus, engineMessage, unreachable } from './container-client.ts';
import { SubmissionFailed } from './errors.ts';
import { withVersion } from './image-name.ts';

const MEMORY_MILLISECONDS = 60_000;

export interface ImageFacts {
  /** USER of the image, perhaps empty. */
  readonly user: string;
}

export class ContainerImages {
  readonly #docker: Docker;
  readonly #computeUrl: string;
  readonly #pullTimeoutSeconds: number;
  readonly #known = new Map<string, { facts: ImageFacts; until: number }>();
  readonly #pulls = new Map<string, Promise<void>>();

  constructor(docker: Docker, computeUrl: string, pullTimeoutSeconds: number) {
    this.#docker = docker;
    this.#computeUrl = computeUrl;
    this.#pullTimeoutSeconds = pullTimeoutSeconds;
  }

  /** @throws {SubmissionFailed} when the image is missing and cannot be pulled, {ServiceUnreachable} */
  async facts(image: string): Promise<ImageFacts> {
    const known = this.#known.get(image);
    if (known && known.until > Date.now()) return known.facts;
    let facts = await this.#inspect(image);
    if (facts === null) {
      await this.#pullOnce(image);
      facts = await this.#inspect(image);
    }
    if (facts === null) throw this.#missing(image, 'the engine reports it pulled but does not have it');
    this.#known.set(image, { facts, until: Date.now() + MEMORY_MILLISECONDS });
    return facts;
  }

  /** Forgets an image that turned out to be gone. */
  forget(image: string): void {
    this.#known.delete(image);
  }

  async #inspect(image: string): Promise<ImageFacts | null> {
    try {
      const { Config: config } = await this.#docker.getImage(image).inspect();
      return { user: config.User ?? '' };
    } catch (error) {
      if (answeredStatus(error) === 404) return null;
      throw unreachable(error, this.#computeUrl);
    }
  }

  /** Jobs that need the same image wait for one pull. */
  async #pullOnce(image: string): Promise<void> {
    let pull = this.#pulls.get(image);
    if (pull === undefined) {
      pull = this.#pull(image).finally(() => this.#pulls.delete(image));
      this.#pulls.set(image, pull);
    }
    await pull;
  }

  async #pull(image: string): Promise<void> {
    const abortSignal = AbortSignal.timeout(this.#pullTimeoutSeconds * 1000);
    try {
      const progress = await this.#docker.pull(withVersion(image), { abortSignal });
      await new Promise<void>((resolve, reject) => {
        this.#docker.modem.followProgress(progress, (error) => (error ? reject(error) : resolve()));
      });
    } catch (error) {
      if (abortSignal.aborted) throw this.#missing(image, `it took more than ${this.#pullTimeoutSeconds} s`);
      throw this.#missing(image, engineMessage(error));
    }
  }

  #missing(image: string, reason: string): SubmissionFailed {
    return new SubmissionFailed(
      `image "${image}" is not on the compute resource and could not be pulled: ${reason}`,
      false,
    );
  }
}
