/** Connections to a container engine (Docker, or Podman through the same interface), and what its errors mean. */
import { existsSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import type Docker from 'dockerode';
import type { DockerOptions } from 'dockerode';
import { ServiceRefused, ServiceUnreachable } from './errors.ts';

export type EngineAddress =
  | { readonly kind: 'socket'; readonly path: string }
  | { readonly kind: 'tcp'; readonly host: string; readonly port: number };

/** `unix:///path`, `tcp://host:port`, or null for anything else. */
export function parseEngineAddress(text: string): EngineAddress | null {
  const path = /^unix:\/\/(\/[^\0]+)$/.exec(text)?.[1];
  if (path !== undefined) return { kind: 'socket', path };
  const tcp = /^tcp:\/\/(?:\[([0-9a-fA-F:]+)\]|([\w.-]+)):(\d{1,5})\/?$/.exec(text);
  const host = tcp?.[1] ?? tcp?.[2];
  const port = Number(tcp?.[3]);
  return host !== undefined && port <= 65535 ? { kind: 'tcp', host, port } : null;
}

/**
 * Opens the engine that a compute_url names; `docker:` is the one of DOCKER_HOST, else of the first usual socket there is.
 * @throws {ServiceRefused} when there is none
 */
export function connect(computeUrl: string): Docker {
  const address = /^docker:(\/\/)?$/.test(computeUrl) ? findEngine() : parseEngineAddress(computeUrl);
  if (address === null) throw new ServiceRefused(`"${computeUrl}" names no container engine`);
  return address.kind === 'socket'
    ? open({ socketPath: address.path })
    : open({ protocol: 'http', host: address.host, port: address.port });
}

const load = createRequire(import.meta.url);

/** Servers without containers start faster, and in less memory, without the library and the 150 modules that it brings. */
function open(options: DockerOptions): Docker {
  const Client: typeof Docker = load('dockerode');
  return new Client(options);
}

function findEngine(): EngineAddress {
  const configured = process.env.DOCKER_HOST;
  if (configured !== undefined && configured !== '') {
    const address = parseEngineAddress(configured);
    if (address === null) {
      throw new ServiceRefused(`DOCKER_HOST is "${configured}"; it should be unix:///path or tcp://host:port`);
    }
    return address;
  }
  const sockets = usualSockets();
  const path = sockets.find((candidate) => existsSync(candidate));
  if (path === undefined) {
    throw new ServiceRefused(
      `no container engine found: DOCKER_HOST is not set and none of ${sockets.join(', ')} is there`,
    );
  }
  return { kind: 'socket', path };
}

function usualSockets(): string[] {
  const runtime = process.env.XDG_RUNTIME_DIR;
  const home = process.env.HOME;
  return [
    ...(runtime ? [join(runtime, 'docker.sock'), join(runtime, 'podman/podman.sock')] : []),
    ...(home ? [join(home, '.docker/run/docker.sock')] : []),
    '/var/run/docker.sock',
    '/run/podman/podman.sock',
    '/run/podman.sock',
  ];
}

/** The HTTP status that an engine answered with, or null when it did not answer. */
export function answeredStatus(error: unknown): number | null {
  if (typeof error !== 'object' || error === null || !('statusCode' in error)) return null;
  return typeof error.statusCode === 'number' ? error.statusCode : null;
}

/** What the engine said was wrong, in its own words. */
export function engineMessage(error: unknown): string {
  if (typeof error !== 'object' || error === null) return String(error);
  const answer: unknown = 'json' in error ? error.json : undefined;
  if (typeof answer === 'object' && answer !== null && 'message' in answer) return String(answer.message);
  return error instanceof Error ? error.message : String(error);
}

/** The error for an engine that did not answer, or answered that it failed. */
export function unreachable(error: unknown, computeUrl: string): ServiceUnreachable {
  const problem = answeredStatus(error) === null ? 'does not answer' : 'failed';
  return new ServiceUnreachable(`the container engine at ${computeUrl} ${problem}: ${engineMessage(error)}`);
}
