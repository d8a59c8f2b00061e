import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { tryLock } from '../base/file-lock.ts';

/**
 * Locks a data directory for one server, and returns a function that unlocks it. Returns undefined if another process
 * has the lock.
 */
export function tryLockServer(dataDir: string): (() => void) | undefined {
  mkdirSync(dataDir, { recursive: true, mode: 0o700 });
  const path = join(dataDir, 'server.lock');
  try {
    return tryLock(path);
  } catch (error) {
    throw new Error(`cannot lock ${path}: ${(error as Error).message}`, { cause: error });
  }
}
