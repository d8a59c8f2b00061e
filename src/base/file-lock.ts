import { closeSync, openSync } from 'node:fs';
import { DatabaseSync } from 'node:sqlite';

/** SQLITE_BUSY, https://sqlite.org/rescode.html */
const BUSY = 5;

/**
 * Locks a file over all processes, and returns a function that unlocks it. Returns undefined if it is locked. The lock is
 * that of SQLite, which is the only file lock that Node has; the kernel releases it when the process ends, however it
 * ends. No other code of this process may open the file: closing it again would release the lock.
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
    if ((error as { errcode?: number }).errcode === BUSY) return undefined;
    throw error;
  }
}
