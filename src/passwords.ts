/**
 * Password hashes: argon2id (RFC 9106) in the PHC string format; those of Django (PBKDF2-SHA-256) are verified, so that accounts
 * of a CUBE can move over, and replaced at log-in.
 */
import { type Argon2Parameters, argon2, pbkdf2, randomBytes, timingSafeEqual } from 'node:crypto';
import { availableParallelism } from 'node:os';
import { promisify } from 'node:util';
import { Limiter } from './limiter.ts';

/** OWASP's recommendation for argon2id: 19 MiB, two passes, one lane. */
const MEMORY_KIB = 19_456;
const PASSES = 2;
const LANES = 1;
const TAG_BYTES = 32;
const SALT_BYTES = 16;

/** More would take 19 MiB each, and the threads (UV_THREADPOOL_SIZE is 8) that reading and writing files needs. */
const hashing = new Limiter(Math.min(availableParallelism(), 4));

const argon2Async = promisify(argon2);
const pbkdf2Async = promisify(pbkdf2);

function phc(text: Buffer): string {
  return text.toString('base64').replace(/=+$/, '');
}

const PREFIX = `$argon2id$v=19$m=${MEMORY_KIB},t=${PASSES},p=${LANES}$`;

function argon2id(parameters: Argon2Parameters): Promise<Buffer> {
  return hashing.run(() => argon2Async('argon2id', parameters));
}

export async function hashPassword(password: string): Promise<string> {
  const nonce = randomBytes(SALT_BYTES);
  const tag = await argon2id({
    message: password,
    nonce,
    memory: MEMORY_KIB,
    passes: PASSES,
    parallelism: LANES,
    tagLength: TAG_BYTES,
  });
  return `${PREFIX}${phc(nonce)}$${phc(tag)}`;
}

async function verifyArgon2(password: string, stored: string): Promise<boolean> {
  const match = /^\$argon2id\$v=19\$m=(\d+),t=(\d+),p=(\d+)\$([A-Za-z0-9+/]+)\$([A-Za-z0-9+/]+)$/.exec(stored);
  if (!match) return false;
  const [, memory, passes, parallelism, salt = '', expected = ''] = match;
  const wanted = Buffer.from(expected, 'base64');
  const tag = await argon2id({
    message: password,
    nonce: Buffer.from(salt, 'base64'),
    memory: Number(memory),
    passes: Number(passes),
    parallelism: Number(parallelism),
    tagLength: wanted.length,
  });
  return timingSafeEqual(tag, wanted);
}

/** Django's format: `pbkdf2_sha256$<iterations>$<salt>$<base64>`. */
async function verifyDjango(password: string, stored: string): Promise<boolean> {
  const [, iterations = '', salt = '', expected = ''] = stored.split('$');
  const wanted = Buffer.from(expected, 'base64');
  if (wanted.length === 0 || !/^\d{1,8}$/.test(iterations)) return false;
  return timingSafeEqual(await pbkdf2Async(password, salt, Number(iterations), wanted.length, 'sha256'), wanted);
}

/** False for a wrong password, and for a stored text that is no hash. */
export async function verifyPassword(password: string, stored: string): Promise<boolean> {
  if (stored.startsWith('$argon2id$')) return verifyArgon2(password, stored);
  return stored.startsWith('pbkdf2_sha256$') ? verifyDjango(password, stored) : false;
}

/** Whether a hash is of another kind or weaker than those that are made today. */
export function needsRehash(stored: string): boolean {
  return !stored.startsWith(PREFIX);
}
