import { closeSync, openSync } from 'node:fs';
import { readdir, rm, stat } from 'node:fs/promises';
import { DatabaseSync } from 'node:sqlite';
import { unlessMissing } from './errors.ts';
import type { Layout } from './layout.ts';

/** Runs work on an upload unless somebody else is at it, in this process or another; then it answers nothing. */
export type UploadLocks = <T>(id: string, work: () => Promise<T>) => Promise<{ readonly value: T } | undefined>;

/**
 * Several processes may serve one directory. A lock file alone would outlive a process that is killed; a lock of SQLite on
 * it, the only file lock that Node has, ends with the process that holds it.
 */
export async function createUploadLocks(layout: Layout): Promise<UploadLocks> {
  await sweep(layout);
  const busy = new Set<string>();

  return async (id, work) => {
    if (busy.has(id)) return undefined;
    busy.add(id);
    try {
      const release = tryLock(layout.lock(id));
      if (release === undefined) return undefined;
      try {
        return { value: await work() };
      } finally {
        // Only when the upload is gone: whoever still waits at this file finds no upload, and nobody makes one under the same id.
        if (await isGone(layout, id)) await rm(layout.lock(id), { force: true });
        release();
      }
    } finally {
      busy.delete(id);
    }
  };
}

/** SQLITE_BUSY, https://sqlite.org/rescode.html */
const BUSY = 5;

function tryLock(path: string): (() => void) | undefined {
  closeSync(openSync(path, 'a', 0o600));
  const database = new DatabaseSync(path, { timeout: 0 });
  try {
    database.exec('BEGIN EXCLUSIVE');
    return () => database.close();
  } catch (error) {
    database.close();
    if ((error as { errcode?: number }).errcode === BUSY) return undefined;
    throw error;
  }
}

const isGone = async (layout: Layout, id: string): Promise<boolean> =>
  (await unlessMissing(stat(layout.upload(id)))) === undefined;

/** A process that was killed may have left the lock of an upload that had gone. */
async function sweep(layout: Layout): Promise<void> {
  for (const id of await readdir(layout.locks)) {
    if (await isGone(layout, id)) await rm(layout.lock(id), { force: true });
  }
}
