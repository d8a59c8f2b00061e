import { closeSync, mkdirSync, openSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';

/** SQLITE_BUSY, https://sqlite.org/rescode.html */
const BUSY = 5;

/**
 * Locks a data directory for one server, and returns a function that unlocks it. Returns undefined if another process
 * has the lock. The lock is that of SQLite on a file of its own, which the kernel releases when the process ends,
 * however it ends. No other code may open the file: closing it again would release the lock of this process.
 */
export function tryLockServer(dataDir: string): (() => void) | undefined {
  mkdirSync(dataDir, { recursive: true, mode: 0o700 });
  const path = join(dataDir, 'server.lock');
  closeSync(openSync(path, 'a', 0o600));
  const database = new DatabaseSync(path, { timeout: 0 });
  try {
    // Without the pragma SQLite would write a journal, for which a full disk has no space.
    database.exec('PRAGMA journal_mode = MEMORY; BEGIN EXCLUSIVE');
    return () => database.close();
  } catch (error) {
    database.close();
    if ((error as { errcode?: number }).errcode === BUSY) return undefined;
    throw new Error(`cannot lock ${path}: ${(error as Error).message}`, { cause: error });
  }
}
