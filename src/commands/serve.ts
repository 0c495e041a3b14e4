/** `hypercube serve`: everything in one process. */
import type { FastifyInstance } from 'fastify';
import { type Config, loadConfig } from '../config.ts';
import { createLog, type Log } from '../log.ts';
import { tellPassword } from './first-administrator.ts';
import { openRuntime } from './runtime.ts';
import { Shutdown, STOP_MARGIN_SECONDS } from './shutdown.ts';

const IDLE_CHECK_MILLISECONDS = 100;

export interface ServeOptions {
  /** Whether background work is done here too. */
  readonly worker: boolean;
}

export async function serve(options: ServeOptions): Promise<void> {
  const config = loadConfig(process.env);
  const log = createLog(config);
  const shutdown = new Shutdown(config.shutdownSeconds + STOP_MARGIN_SECONDS);
  // loads while PostgreSQL starts
  const modules = Promise.all([import('../server.ts'), options.worker ? import('../jobs/worker.ts') : null]);
  modules.catch(() => undefined);
  const runtime = await openRuntime({ config, log, asServer: true, onLost: shutdown.fail });
  try {
    const [{ buildServer }, jobs] = await modules;
    const worker = await jobs?.startWorker(runtime.services);
    try {
      const app = await buildServer(runtime.services, worker ? [{ name: 'worker', problem: worker.problem }] : []);
      try {
        const address = await app.listen({ host: config.host, port: config.port });
        process.stderr.write(`Hypercube is ready at ${config.baseUrl ?? address}/api/v1/\n`);
        tellPassword(runtime.administrator);
        const { error } = await shutdown.requested;
        report(log, error);
      } finally {
        await closeServer(app, config, log);
      }
    } finally {
      await worker?.stop();
    }
  } finally {
    await runtime.close();
  }
}

export function report(log: Log, error: Error | null): void {
  if (error === null) {
    log.info('stopping');
  } else {
    process.exitCode = 1;
    log.fatal({ err: error }, 'stopping, because the server cannot go on');
  }
}

/** Takes no more connections, lets running requests end, and cuts off those that take too long. */
async function closeServer(app: FastifyInstance, config: Config, log: Log): Promise<void> {
  const cutOff = setTimeout(() => {
    log.warn({ seconds: config.shutdownSeconds }, 'cutting off the requests that are still running');
    app.server.closeAllConnections();
  }, config.shutdownSeconds * 1000);
  // A connection whose last request has been answered would stay open as long as its client likes.
  const hangUp = setInterval(() => app.server.closeIdleConnections(), IDLE_CHECK_MILLISECONDS);
  try {
    await app.close();
  } finally {
    clearInterval(hangUp);
    clearTimeout(cutOff);
  }
}
