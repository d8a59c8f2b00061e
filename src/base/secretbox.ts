import { createCipheriv, createDecipheriv, randomBytes } from 'node:crypto';

// Authenticated encryption for secrets at rest: AES-256-GCM (NIST SP 800-38D) with a random nonce for each secret.
const CIPHER = 'aes-256-gcm';
const NONCE_BYTES = 12;
const TAG_BYTES = 16;
const VERSION = 'v1:';

/** A sealed secret cannot be opened: it was sealed with another key or context, or it was altered. */
export class UnsealError extends Error {
  override readonly name = 'UnsealError';
}

/**
 * Encrypts with a key of 32 bytes. `context` says what the secret is for; it is authenticated, so that a sealed secret
 * cannot be copied to the place of another.
 */
export function seal(key: Uint8Array, plaintext: string | Uint8Array, context: string): string {
  const nonce = randomBytes(NONCE_BYTES);
  const cipher = createCipheriv(CIPHER, key, nonce).setAAD(Buffer.from(context));
  const sealed = Buffer.concat([nonce, cipher.update(plaintext), cipher.final(), cipher.getAuthTag()]);
  return VERSION + sealed.toString('base64');
}

/** Decrypts what `seal` returned for the same key and context. */
export function open(key: Uint8Array, sealed: string, context: string): Buffer {
  const bytes = Buffer.from(sealed.slice(VERSION.length), 'base64');
  if (!sealed.startsWith(VERSION) || bytes.length < NONCE_BYTES + TAG_BYTES) {
    throw new UnsealError('not a sealed secret, or of an unknown version');
  }
  const decipher = createDecipheriv(CIPHER, key, bytes.subarray(0, NONCE_BYTES), { authTagLength: TAG_BYTES })
    .setAAD(Buffer.from(context))
    .setAuthTag(bytes.subarray(-TAG_BYTES));
  try {
    return Buffer.concat([decipher.update(bytes.subarray(NONCE_BYTES, -TAG_BYTES)), decipher.final()]);
  } catch {
    throw new UnsealError('the secret was sealed with another key or context, or it was altered');
  }
}
