import { createCipheriv, createDecipheriv, randomBytes } from 'node:crypto';

// Authenticated encryption for secrets at rest: AES-256-GCM (NIST SP 800-38D) with a random nonce for each secret.
const CIPHER = 'aes-256-gcm';
const NONCE_BYTES = 12;
const TAG_BYTES = 16;
const VERSION = 'v1:';

/** A sealed text that this key does not open: another key, another context, or somebody changed it. */
export class UnsealError extends Error {
  override readonly name = 'SealBroken';
}

/** Encrypts with a key of 32 bytes. `context` says what the secret is, so that nobody can put it in another's place. */
export function seal(key: Uint8Array, plaintext: string | Uint8Array, context: string): string {
  const nonce = randomBytes(NONCE_BYTES);
  const cipher = createCipheriv(CIPHER, key, nonce).setAAD(Buffer.from(context));
  const sealed = Buffer.concat([nonce, cipher.update(plaintext), cipher.final(), cipher.getAuthTag()]);
  return VERSION + sealed.toString('base64');
}

/** The plaintext of what `seal` made with the same key and context. */
export function open(key: Uint8Array, sealed: string, context: string): Buffer {
  const bytes = Buffer.from(sealed.slice(VERSION.length), 'base64');
  if (!sealed.startsWith(VERSION) || bytes.length < NONCE_BYTES + TAG_BYTES) {
    throw new UnsealError('not a sealed secret of a version that is known here');
  }
  const decipher = createDecipheriv(CIPHER, key, bytes.subarray(0, NONCE_BYTES), { authTagLength: TAG_BYTES })
    .setAAD(Buffer.from(context))
    .setAuthTag(bytes.subarray(-TAG_BYTES));
  try {
    return Buffer.concat([decipher.update(bytes.subarray(NONCE_BYTES, -TAG_BYTES)), decipher.final()]);
  } catch {
    throw new UnsealError('the secret was sealed with another key, for another purpose, or changed since');
  }
}
