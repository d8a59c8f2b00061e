import { createHmac, timingSafeEqual } from 'node:crypto';

/**
 * Makes the upload ids that clients see. They carry a MAC over repo and caller, so that an upload can only be continued by
 * the caller who began it, in the same repo. Uploads need no rows in the database, and survive a restart.
 */
export interface UploadIds {
  write(id: string, repo: string, caller: string): string;
  /** Returns the internal id; undefined if the MAC is not for this repo and caller. */
  read(text: string, repo: string, caller: string): string | undefined;
}

export function createUploadIds(key: Uint8Array): UploadIds {
  const mac = (...parts: string[]): Buffer =>
    createHmac('sha256', key).update(parts.join('\n')).digest().subarray(0, 16);
  return {
    write: (id, repo, caller) => `${id}.${mac(id, repo, caller).toString('base64url')}`,
    read(text, repo, caller) {
      const [id = '', encoded = ''] = text.split('.', 2);
      const given = Buffer.from(encoded, 'base64url');
      const expected = mac(id, repo, caller);
      return given.length === expected.length && timingSafeEqual(given, expected) ? id : undefined;
    },
  };
}
