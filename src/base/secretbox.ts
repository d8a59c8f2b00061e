import { createCipheriv, createDecipheriv, hash, randomBytes } from 'node:crypto';

// Authenticated encryption for secrets at rest: AES-256-GCM (NIST SP 800-38D) with a random nonce for each secret.
const CIPHER = 'aes-256-gcm';
const NONCE_BYTES = 12;
const TAG_BYTES = 16;
/** `v2:<key id>:<base64>`. Version 1, without a key id, is not written any more. */
const SEALED = /^(?:v1|v2:(?<id>[0-9a-f]{16})):(?<content>[A-Za-z0-9+/]*={0,2})$/;

/** A key of 32 bytes, and the id by which sealed secrets name it. */
export interface SealingKey {
  readonly id: string;
  readonly bytes: Uint8Array;
}

/** A sealed secret cannot be opened: it was sealed with another key or context, or it was altered. */
export class UnsealError extends Error {
  override readonly name = 'UnsealError';
}

/** Makes a key of 32 bytes. Its id is a digest, from which the key cannot be found because it is random. */
export const sealingKey = (bytes: Uint8Array): SealingKey => ({
  id: hash('sha256', Buffer.concat([Buffer.from('wharfinger sealing key\n'), bytes]), 'hex').slice(0, 16),
  bytes,
});

/**
 * Encrypts a secret. `context` says what the secret is for; it is authenticated, so that a sealed secret cannot be
 * copied to the place of another.
 */
export function seal(key: SealingKey, plaintext: string | Uint8Array, context: string): string {
  const nonce = randomBytes(NONCE_BYTES);
  const cipher = createCipheriv(CIPHER, key.bytes, nonce).setAAD(Buffer.from(context));
  const sealed = Buffer.concat([nonce, cipher.update(plaintext), cipher.final(), cipher.getAuthTag()]);
  return `v2:${key.id}:${sealed.toString('base64')}`;
}

/** The id of the key that a secret was sealed with. Undefined for version 1. Throws for anything else. */
export const keyIdOf = (sealed: string): string | undefined => parse(sealed).id;

/** Decrypts what `seal` returned for the same key and context. */
export function open(key: SealingKey, sealed: string, context: string): Buffer {
  const { id, bytes } = parse(sealed);
  if (id !== undefined && id !== key.id) throw cannotOpen();
  const decipher = createDecipheriv(CIPHER, key.bytes, bytes.subarray(0, NONCE_BYTES), { authTagLength: TAG_BYTES })
    .setAAD(Buffer.from(context))
    .setAuthTag(bytes.subarray(-TAG_BYTES));
  try {
    return Buffer.concat([decipher.update(bytes.subarray(NONCE_BYTES, -TAG_BYTES)), decipher.final()]);
  } catch {
    throw cannotOpen();
  }
}

const cannotOpen = (): UnsealError =>
  new UnsealError('the secret was sealed with another key or context, or it was altered');

function parse(sealed: string): { id: string | undefined; bytes: Buffer } {
  const { id, content = '' } = SEALED.exec(sealed)?.groups ?? {};
  const bytes = Buffer.from(content, 'base64');
  if (bytes.length < NONCE_BYTES + TAG_BYTES) throw new UnsealError('not a sealed secret, or of an unknown version');
  return { id, bytes };
}
