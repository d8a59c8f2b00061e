import { readdir, rm, stat } from 'node:fs/promises';
import { unlessMissing } from './errors.ts';
import { tryLock } from './file-lock.ts';
import type { Layout } from './layout.ts';

export interface UploadLocks {
  /** Runs `work` with the lock of an upload. Returns undefined if the upload is locked, in this or another process. */
  tryRun<T>(id: string, work: () => Promise<T>): Promise<{ readonly value: T } | undefined>;
}

/**
 * Locks uploads, because several processes may serve one directory. The existence of a file cannot be the lock: the
 * file would remain when its process is killed.
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

const isDeleted = async (layout: Layout, id: string): Promise<boolean> =>
  (await unlessMissing(stat(layout.upload(id)))) === undefined;

/** Deletes lock files whose upload does not exist: a process was killed before it deleted them. */
async function deleteStaleLocks(layout: Layout): Promise<void> {
  for (const id of await readdir(layout.locks)) {
    if (await isDeleted(layout, id)) await rm(layout.lock(id), { force: true });
  }
}
