/** A data directory with storage, and jobs on it, for tests of engines. */
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { Readable } from 'node:stream';
import { pino } from 'pino';
import type { Engine, InputFile, Job, JobState } from '../../src/compute/engine.ts';
import { hasEnded } from '../../src/compute/engine.ts';
import { FilesystemStorage } from '../../src/storage/filesystem.ts';
import type { Storage } from '../../src/storage/storage.ts';

export const silent = pino({ level: 'silent' });

export class Bench implements AsyncDisposable {
  readonly dataDirectory: string;
  readonly storage: Storage;

  private constructor(dataDirectory: string, storage: Storage) {
    this.dataDirectory = dataDirectory;
    this.storage = storage;
  }

  static async open(): Promise<Bench> {
    const dataDirectory = mkdtempSync(join(tmpdir(), 'hypercube-engines-'));
    return new Bench(dataDirectory, await FilesystemStorage.open(join(dataDirectory, 'files'), 1));
  }

  path(storagePath: string): string {
    return join(this.dataDirectory, 'files', storagePath);
  }

  async put(storagePath: string, content: string): Promise<void> {
    await this.storage.place(await this.storage.receive(Readable.from([Buffer.from(content)])), storagePath);
  }

  read(storagePath: string): string {
    return readFileSync(this.path(storagePath), 'utf8');
  }

  /** A program of the process engine, below `<data>/programs`. */
  program(path: string, content: string, mode = 0o755): string {
    const file = join(this.dataDirectory, 'programs', path);
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(file, content, { mode });
    return join(this.dataDirectory, 'programs');
  }

  async [Symbol.asyncDispose](): Promise<void> {
    rmSync(this.dataDirectory, { recursive: true, force: true });
  }
}

let lastId = 0;

/** A job whose whole input is what lies in storage under `in`. */
export function makeJob(bench: Bench, given: Partial<Job> = {}): Job {
  const id = given.id ?? `test-${process.pid}-${Date.now()}-${++lastId}`;
  async function* inputs(): AsyncGenerator<InputFile> {
    for (const inputPath of given.inputPaths ?? ['in']) {
      for await (const { path, sizeBytes } of bench.storage.list(inputPath)) {
        yield { relativePath: path.slice(inputPath.length + 1), storagePath: path, sizeBytes };
      }
    }
  }
  return {
    instanceId: 1,
    pluginType: 'ds',
    image: 'localhost/busybox:1',
    entrypoint: ['sh'],
    arguments: [],
    pathFlags: [],
    environment: {},
    ownerUsername: 'alice',
    limits: { numberOfWorkers: 1, cpuMillicores: 1000, memoryMebibytes: 200, gpus: 0 },
    maxExecutionSeconds: null,
    inputPaths: ['in'],
    outputPath: `home/alice/feeds/feed_1/pl_${id}/data`,
    stagedInputs: inputs,
    zippedInputs: inputs,
    ...given,
    id,
  };
}

/** Waits, as the server does, for the end of the program. */
export async function ended(engine: Engine, job: Job): Promise<JobState> {
  for (;;) {
    await new Promise<void>((resolve) => engine.watch('plugin', job, resolve));
    const state = await engine.inspect('plugin', job);
    if (state === null) throw new Error('the engine does not know the job');
    if (hasEnded(state.status)) return state;
  }
}

export async function eventually(condition: () => boolean | Promise<boolean>, what: string): Promise<void> {
  for (let turn = 0; turn < 600; turn++) {
    if (await condition()) return;
    await new Promise((resolve) => setTimeout(resolve, 25));
  }
  throw new Error(`did not happen: ${what}`);
}
