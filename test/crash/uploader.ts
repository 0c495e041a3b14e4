/** A client that uploads, reads, moves and deletes files of its own as fast as it can, and writes down what was acknowledged. */
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import type { Answer, Request } from '../helpers/client.ts';
import type { Gate } from './gate.ts';
import type { Change, Ledger, ListedFile, StoredFile } from './ledger.ts';
import type { Random } from './random.ts';

const KIBIBYTE = 1024;
export const LARGEST_FILE_BYTES = 6 * 1024 * KIBIBYTE;

/** As many files as one uploader keeps, so that checking them all stays quick. */
const MOST_FILES = 60;

export interface UploaderOptions {
  readonly request: Request;
  readonly url: string;
  readonly token: string;
  readonly gate: Gate;
  readonly ledger: Ledger;
  readonly random: Random;
  /** At least `LARGEST_FILE_BYTES`, of which each file is a part. */
  readonly material: Buffer;
  /** Storage path of a folder that nobody else changes. */
  readonly home: string;
}

export class Uploader {
  readonly #options: UploaderOptions;
  /** For names that are new. */
  #count = 0;
  #folder: string;

  constructor(options: UploaderOptions) {
    this.#options = options;
    this.#folder = `${options.home}/f0`;
  }

  work(): Promise<void> {
    return this.#options.gate.repeat(async () => {
      await this.#doOneThing();
      return true;
    });
  }

  async #doOneThing(): Promise<void> {
    const files = this.#ownFiles();
    const dice = this.#options.random.fraction();
    if (files.length < 3 || (dice < 0.5 && files.length < MOST_FILES)) return this.#upload();
    const file = this.#options.random.pick(files);
    if (dice < 0.65) return this.#readBack(file);
    if (dice < 0.78) return this.#move(file);
    if (dice < 0.91) return this.#remove(file);
    if (dice < 0.97) return this.#moveFolder();
    return this.#removeFolder();
  }

  #ownFiles(): StoredFile[] {
    return this.#options.ledger.files().filter(({ path }) => path.startsWith(`${this.#options.home}/`));
  }

  #newName(): string {
    this.#count += 1;
    return String(this.#count);
  }

  async #upload(): Promise<void> {
    const { random, material } = this.#options;
    const most = random.pick([8 * KIBIBYTE, 64 * KIBIBYTE, 64 * KIBIBYTE, 1024 * KIBIBYTE, LARGEST_FILE_BYTES]);
    const sizeBytes = random.between(0, most);
    const start = random.between(0, material.length - sizeBytes);
    const content = material.subarray(start, start + sizeBytes);
    const path = `${this.#folder}/${random.chance(0.2) ? 'sub/' : ''}${this.#newName()}.bin`;
    const form = new FormData();
    form.set('upload_path', path);
    form.set('fname', new Blob([Uint8Array.from(content)]), 'content');
    const answer = await this.#change(
      { before: [], after: [{ path, sizeBytes, sha256: sha256Of(content) }] },
      this.#request('POST', '/api/v1/userfiles/', { multipart: form }),
      201,
    );
    if (answer) assert.deepEqual([answer.json.fname, answer.json.fsize], [path, sizeBytes]);
  }

  async #readBack(file: StoredFile): Promise<void> {
    const id = await this.#idOf(file);
    if (id === null) return;
    const { url, token, gate } = this.#options;
    let content: Uint8Array;
    try {
      content = await download(url, token, { id, fname: file.path });
    } catch (error) {
      if (gate.mayFail) return;
      throw error;
    }
    assert.equal(sha256Of(content), file.sha256, `the bytes of ${file.path}`);
  }

  async #move(file: StoredFile): Promise<void> {
    const id = await this.#idOf(file);
    if (id === null) return;
    const path = `${this.#folder}/moved/${this.#newName()}.bin`;
    await this.#change(
      { before: [file], after: [{ ...file, path }] },
      this.#request('PUT', `/api/v1/userfiles/${id}/`, { json: { upload_path: path } }),
      200,
    );
  }

  async #remove(file: StoredFile): Promise<void> {
    const id = await this.#idOf(file);
    if (id === null) return;
    await this.#change({ before: [file], after: [] }, this.#request('DELETE', `/api/v1/userfiles/${id}/`), 204);
  }

  async #moveFolder(): Promise<void> {
    const id = await this.#folderId();
    if (id === null) return;
    const from = this.#folder;
    const to = `${this.#options.home}/f${this.#newName()}`;
    const before = this.#filesInFolder();
    const after = before.map((file) => ({ ...file, path: to + file.path.slice(from.length) }));
    this.#folder = `${this.#options.home}/f${this.#newName()}`;
    await this.#change(
      { before, after },
      this.#request('PUT', `/api/v1/filebrowser/${id}/`, { json: { path: to } }),
      200,
    );
  }

  async #removeFolder(): Promise<void> {
    const id = await this.#folderId();
    if (id === null) return;
    const before = this.#filesInFolder();
    this.#folder = `${this.#options.home}/f${this.#newName()}`;
    await this.#change(
      { before, after: [], inBackground: true },
      this.#request('DELETE', `/api/v1/filebrowser/${id}/`),
      202,
    );
  }

  #filesInFolder(): StoredFile[] {
    return this.#ownFiles().filter(({ path }) => path.startsWith(`${this.#folder}/`));
  }

  /** null: the server was killed, or the folder is not there yet. */
  async #folderId(): Promise<number | null> {
    const path = encodeURIComponent(this.#folder);
    const answer = await this.#ask(this.#request('GET', `/api/v1/filebrowser/search/?path=${path}`), 200);
    return answer === null || Number(answer.json.count) === 0 ? null : Number(answer.json.results?.[0]?.id);
  }

  /** null: the server was killed. */
  async #idOf({ path }: StoredFile): Promise<number | null> {
    const query = encodeURIComponent(path);
    const answer = await this.#ask(this.#request('GET', `/api/v1/userfiles/search/?fname_exact=${query}`), 200);
    if (answer === null) return null;
    assert.equal(answer.json.count, 1, `${path} is listed once`);
    return Number(answer.json.results?.[0]?.id);
  }

  /** The change is written down before its request begins, and counts from its answer on. */
  async #change(change: Change, send: () => Promise<Answer>, expected: number): Promise<Answer | null> {
    this.#options.ledger.begin(change);
    const answer = await this.#ask(send, expected);
    if (answer) this.#options.ledger.acknowledge(change);
    return answer;
  }

  #ask(send: () => Promise<Answer>, expected: number): Promise<Answer | null> {
    return this.#options.gate.ask(send(), expected);
  }

  #request(method: string, path: string, options: Parameters<Request>[2] = {}): () => Promise<Answer> {
    const { request, token } = this.#options;
    return () => request(method, path, { token, ...options });
  }
}

export function sha256Of(content: Uint8Array): string {
  return createHash('sha256').update(content).digest('hex');
}

/** @throws when not all of it arrives */
export async function download(
  url: string,
  token: string,
  file: Pick<ListedFile, 'id' | 'fname'>,
): Promise<Uint8Array> {
  const name = file.fname.slice(file.fname.lastIndexOf('/') + 1);
  const response = await fetch(`${url}/api/v1/userfiles/${file.id}/${name}`, {
    headers: { authorization: `Token ${token}` },
  });
  if (response.status !== 200)
    throw new Error(`download of ${file.fname}: ${response.status} ${await response.text()}`);
  return new Uint8Array(await response.arrayBuffer());
}
