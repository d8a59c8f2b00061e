import { closeSync, openSync } from 'node:fs';
import { DatabaseSync } from 'node:sqlite';
import { BlobError } from './errors.ts';

/** https://sqlite.org/rescode.html */
const BUSY = 5;
const FULL = 13;

/**
 * Locks a file over all processes, and returns a function that unlocks it. Returns undefined if it is locked. The lock is
 * that of SQLite, which is the only file lock that Node has. It ends with its process.
 */
export function tryLock(path: string): (() => void) | undefined {
  closeSync(openSync(path, 'a', 0o600));
  const database = new DatabaseSync(path, { timeout: 0 });
  try {
    // Without the pragma SQLite would write a journal, for which a full disk has no space.
    database.exec('PRAGMA journal_mode = MEMORY; BEGIN EXCLUSIVE');
    return () => database.close();
  } catch (error) {
    database.close();
    const { errcode } = error as { errcode?: number };
    if (errcode === BUSY) return undefined;
    throw errcode === undefined ? error : new BlobError({ reason: errcode === FULL ? 'full' : 'failed' }, error);
  }
}
