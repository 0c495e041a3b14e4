/** The server's key: what tokens are made from and stored secrets are encrypted with. */
import { createCipheriv, createDecipheriv, hkdfSync, randomBytes, randomUUID } from 'node:crypto';
import { link, mkdir, open, readFile, unlink } from 'node:fs/promises';
import { join } from 'node:path';
import type { Config } from './config.ts';

const KEY_FILE = 'secret.key';
const VERSION = 1;
const NONCE_BYTES = 12;
const TAG_BYTES = 16;

export class UnreadableSecret extends Error {
  override readonly name = 'UnreadableSecret';
}

export class Secrets {
  readonly #key: string;
  readonly #derived = new Map<string, Buffer>();

  constructor(key: string) {
    this.#key = key;
  }

  /** A key of 32 bytes for one purpose (HKDF-SHA-256, RFC 5869). */
  derive(purpose: string): Buffer {
    const known = this.#derived.get(purpose);
    if (known) return known;
    const made = Buffer.from(hkdfSync('sha256', this.#key, 'hypercube', purpose, 32));
    this.#derived.set(purpose, made);
    return made;
  }

  /** AES-256-GCM: one byte of version, nonce, tag, text. */
  encrypt(text: string): Buffer {
    const nonce = randomBytes(NONCE_BYTES);
    const cipher = createCipheriv('aes-256-gcm', this.derive('stored secrets'), nonce);
    const encrypted = Buffer.concat([cipher.update(text, 'utf8'), cipher.final()]);
    return Buffer.concat([Buffer.of(VERSION), nonce, cipher.getAuthTag(), encrypted]);
  }

  /** @throws {UnreadableSecret} when it was encrypted with another key, or damaged */
  decrypt(stored: Buffer): string {
    const nonce = stored.subarray(1, 1 + NONCE_BYTES);
    const tag = stored.subarray(1 + NONCE_BYTES, 1 + NONCE_BYTES + TAG_BYTES);
    try {
      if (stored[0] !== VERSION) throw new Error(`version ${stored[0]}`);
      const decipher = createDecipheriv('aes-256-gcm', this.derive('stored secrets'), nonce);
      decipher.setAuthTag(tag);
      return Buffer.concat([decipher.update(stored.subarray(1 + NONCE_BYTES + TAG_BYTES)), decipher.final()]).toString(
        'utf8',
      );
    } catch (cause) {
      throw new UnreadableSecret(
        "A stored secret cannot be read: the server's key is not the one that it was encrypted with.",
        { cause },
      );
    }
  }
}

async function readKey(file: string): Promise<string | null> {
  try {
    return (await readFile(file, 'utf8')).trim();
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return null;
    throw error;
  }
}

/** Written beside and linked into place, so that a crash or a second process never leaves half a key. */
async function makeKey(directory: string, file: string): Promise<void> {
  const draft = join(directory, `.${KEY_FILE}.${randomUUID()}`);
  const handle = await open(draft, 'wx', 0o600);
  await handle.writeFile(`${randomBytes(32).toString('hex')}\n`);
  await handle.sync();
  await handle.close();
  await link(draft, file).catch((error: unknown) => {
    if (!(error instanceof Error && 'code' in error && error.code === 'EEXIST')) throw error;
  });
  await unlink(draft);
}

/** The key of the setting, else of the file in the data directory, which is made when it is not there. */
export async function loadSecrets(config: Pick<Config, 'secretKey' | 'data'>): Promise<Secrets> {
  if (config.secretKey !== null) return new Secrets(config.secretKey);
  const file = join(config.data, KEY_FILE);
  await mkdir(config.data, { recursive: true });
  if ((await readKey(file)) === null) await makeKey(config.data, file);
  const key = await readKey(file);
  if (key === null || key.length < 32)
    throw new UnreadableSecret(`The key in ${file} is damaged: it has to be at least 32 characters long.`);
  return new Secrets(key);
}
