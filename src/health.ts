/** What a supervisor or load balancer asks: does the process live, and can it do its work now. */
import { setTimeout as delay } from 'node:timers/promises';
import type { FastifyInstance, FastifyReply } from 'fastify';
import { pendingMigrations } from './database/migrate.ts';
import type { Services } from './services.ts';

/** Looks at one thing that the process needs. */
export interface ReadinessCheck {
  readonly name: string;
  /** What is wrong and what would be right, or null. An error it throws counts as what is wrong. */
  readonly problem: () => Promise<string | null>;
}

/** A check that takes longer is as bad as one that fails: whoever asks must get an answer. */
const CHECK_MILLISECONDS = 2000;

function databaseChecks({ pool, database }: Services): readonly ReadinessCheck[] {
  return [
    {
      name: 'database',
      problem: async () => {
        await pool.query('select 1');
        return null;
      },
    },
    {
      name: 'migrations',
      problem: async () => {
        const pending = await pendingMigrations(database);
        if (pending.length === 0) return null;
        return `The database lacks the migrations ${pending.join(', ')}. Run "hypercube migrate".`;
      },
    },
  ];
}

async function problemOf({ problem }: ReadinessCheck, report: (error: unknown) => void): Promise<string | null> {
  const ended = new AbortController();
  const late = delay(CHECK_MILLISECONDS, 'late' as const, { signal: ended.signal }).catch(() => null);
  try {
    const found = await Promise.race([problem(), late]);
    return found === 'late' ? `No answer within ${CHECK_MILLISECONDS / 1000} seconds.` : found;
  } catch (error) {
    report(error);
    return 'It cannot be reached. The log of the server has the reason.';
  } finally {
    ended.abort();
  }
}

export interface Readiness {
  readonly status: 'ready' | 'not ready';
  /** By the name of the check: `ok`, or what is wrong. */
  readonly checks: Readonly<Record<string, string>>;
}

/** @param report takes what a check has thrown */
export async function readiness(
  checks: readonly ReadinessCheck[],
  report: (error: unknown) => void,
): Promise<Readiness> {
  const results = await Promise.all(
    checks.map(async (check) => [check.name, (await problemOf(check, report)) ?? 'ok'] as const),
  );
  const ready = results.every(([, result]) => result === 'ok');
  return { status: ready ? 'ready' : 'not ready', checks: Object.fromEntries(results) };
}

function notCached(reply: FastifyReply): FastifyReply {
  return reply.header('cache-control', 'no-store');
}

/**
 * `/healthz` answers 200 while the process lives and asks nobody; `/readyz` answers 200 when the database answers, has all
 * migrations, and everything else that was given passes, otherwise 503 with the reasons.
 * @param checks of what only some processes have, such as a job worker
 */
export function addHealthRoutes(app: FastifyInstance, services: Services, checks: readonly ReadinessCheck[]): void {
  const all = [...databaseChecks(services), ...checks];
  app.get('/healthz', (_request, reply) => notCached(reply).send({ status: 'alive' }));
  app.get('/readyz', async (request, reply) => {
    const found = await readiness(all, (error) => request.log.warn({ err: error }, 'a readiness check failed'));
    return notCached(reply)
      .code(found.status === 'ready' ? 200 : 503)
      .send(found);
  });
}
