import { closeSync, openSync } from 'node:fs';
import { readdir, rm, stat } from 'node:fs/promises';
import { DatabaseSync } from 'node:sqlite';
import { BlobError, unlessMissing } from './errors.ts';
import type { Layout } from './layout.ts';

export interface UploadLocks {
  /** Runs `work` with the lock of an upload. Returns undefined if the upload is locked, in this or another process. */
  tryRun<T>(id: string, work: () => Promise<T>): Promise<{ readonly value: T } | undefined>;
}

/**
 * Locks uploads, because several processes may serve one directory. The existence of a file cannot be the lock: the
 * file would remain when its process is killed. So the lock is that of SQLite on the file, which is the only file lock
 * that Node has. It ends with its process.
 */
export async function createUploadLocks(layout: Layout): Promise<UploadLocks> {
  await deleteStaleLocks(layout);
  const locked = new Set<string>();

  return {
    async tryRun(id, work) {
      if (locked.has(id)) return undefined;
      locked.add(id);
      try {
        const release = tryLock(layout.lock(id));
        if (release === undefined) return undefined;
        try {
          return { value: await work() };
        } finally {
          // The lock file is deleted only after its upload. A process that has just opened the file then finds no
          // upload, and ids are never reused.
          if (await isDeleted(layout, id)) await rm(layout.lock(id), { force: true });
          release();
        }
      } finally {
        locked.delete(id);
      }
    },
  };
}

/** https://sqlite.org/rescode.html */
const BUSY = 5;
const FULL = 13;

function tryLock(path: string): (() => void) | undefined {
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

const isDeleted = async (layout: Layout, id: string): Promise<boolean> =>
  (await unlessMissing(stat(layout.upload(id)))) === undefined;

/** Deletes lock files whose upload does not exist: a process was killed before it deleted them. */
async function deleteStaleLocks(layout: Layout): Promise<void> {
  for (const id of await readdir(layout.locks)) {
    if (await isDeleted(layout, id)) await rm(layout.lock(id), { force: true });
  }
}
