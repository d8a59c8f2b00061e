import { tryLock as tryLockFile } from '../base/file-lock.ts';
import { BlobError } from './errors.ts';

/** SQLITE_FULL, https://sqlite.org/rescode.html */
const FULL = 13;

/** Locks a file as `src/base/file-lock.ts` does, and throws the errors of blobs. */
export function tryLock(path: string): (() => void) | undefined {
  try {
    return tryLockFile(path);
  } catch (error) {
    const { errcode } = error as { errcode?: number };
    throw errcode === undefined ? error : new BlobError({ reason: errcode === FULL ? 'full' : 'failed' }, error);
  }
}
