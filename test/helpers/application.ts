/** The HTTP application in the test's own process, on a database of its own; requests are handed to it without a socket. */
import { mkdtemp, rm } from 'node:fs/promises';
import type { FastifyInstance } from 'fastify';
import { loadConfig } from '../../src/config.ts';
import type { ReadinessCheck } from '../../src/health.ts';
import { buildServer } from '../../src/server.ts';
import { type OpenServices, openServices } from '../../src/services.ts';
import { silentLog, temporaryDatabase } from './postgres.ts';

export interface TestApplication {
  readonly app: FastifyInstance;
  readonly services: OpenServices;
  close(): Promise<void>;
}

/** @param checks further ones of `/readyz` */
export async function openApplication(checks: readonly ReadinessCheck[] = []): Promise<TestApplication> {
  const data = await mkdtemp('/tmp/hypercube-application-');
  const temporary = await temporaryDatabase();
  const config = loadConfig({ HYPERCUBE_DATA: data, HYPERCUBE_DATABASE_URL: temporary.url });
  const services = await openServices(config, temporary.connection, silentLog);
  const app = await buildServer(services, checks);
  const close = async (): Promise<void> => {
    await app.close();
    await services.close();
    await temporary.close();
    await rm(data, { recursive: true, force: true });
  };
  return { app, services, close };
}
