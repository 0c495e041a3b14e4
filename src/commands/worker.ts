/** `hypercube worker`: background work only, beside servers on the same database and storage. */
import { loadConfig } from '../config.ts';
import { createLog } from '../log.ts';
import { openRuntime } from './runtime.ts';
import { report } from './serve.ts';
import { Shutdown, STOP_MARGIN_SECONDS } from './shutdown.ts';

export async function work(): Promise<void> {
  const config = loadConfig(process.env);
  const log = createLog(config);
  const shutdown = new Shutdown(config.shutdownSeconds + STOP_MARGIN_SECONDS);
  const { startWorker } = await import('../jobs/worker.ts');
  const runtime = await openRuntime({ config, log, asServer: false, onLost: shutdown.fail });
  try {
    const worker = await startWorker(runtime.services);
    try {
      process.stderr.write('Hypercube works in the background\n');
      const { error } = await shutdown.requested;
      report(log, error);
    } finally {
      await worker.stop();
    }
  } finally {
    await runtime.close();
  }
}
