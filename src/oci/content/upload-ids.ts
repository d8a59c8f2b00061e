import { createHmac, timingSafeEqual } from 'node:crypto';

/**
 * Names uploads for clients. A name is good only at the repo and for the caller that the upload was begun for, which its
 * seal proves: nothing about uploads is kept in the database, and every server of it knows them after a restart.
 */
export interface UploadIds {
  write(id: string, repo: string, caller: string): string;
  /** The id in a name; undefined for any that was not made for this repo and caller. */
  read(name: string, repo: string, caller: string): string | undefined;
}

export function createUploadIds(key: Uint8Array): UploadIds {
  const seal = (...parts: string[]): Buffer =>
    createHmac('sha256', key).update(parts.join('\n')).digest().subarray(0, 16);
  return {
    write: (id, repo, caller) => `${id}.${seal(id, repo, caller).toString('base64url')}`,
    read(name, repo, caller) {
      const [id = '', sealed = ''] = name.split('.', 2);
      const given = Buffer.from(sealed, 'base64url');
      const right = seal(id, repo, caller);
      return given.length === right.length && timingSafeEqual(given, right) ? id : undefined;
    },
  };
}
