import { randomUUID } from 'node:crypto';
import type { Blobs } from '../../blobs/blobs.ts';
import { areBlobsHeld, COLLECTION as KEY } from '../../domains/registry/storage/blob-holds.ts';
import { getSetting, putSetting, putSettingIfAbsent } from '../../store/settings.ts';
import type { Store, Transaction } from '../../store/store.ts';
import { OciError } from '../errors.ts';

const FIND = 'SELECT value FROM setting WHERE key = $1';
const RUNNING = 'running';

/**
 * Keeps garbage collection from deleting the file of a blob that an upload links at the same time, also in another
 * process. Garbage collection deletes files in transactions that lock a row exclusively; the transaction that links a new
 * blob takes a share lock on the same row. So either the collection sees the link and keeps the file, or the upload sees
 * that the file is deleted.
 */
export interface GcLock {
  /** Identifies the time since the last garbage collection. Read it before the file of a blob is moved into place. */
  epoch(): Promise<string>;
  /** Call it in the transaction that links the blob. Throws if a collection since `epoch` has deleted the file. */
  requireBlob(tx: Transaction, epoch: string, digest: string): Promise<void>;
}

export async function createGcLock(store: Store, blobs: Pick<Blobs, 'stat'>): Promise<GcLock> {
  // Only an existing row can be locked.
  await store.write((tx) => putSettingIfAbsent(tx, KEY, randomUUID()));
  return {
    epoch: async () => (await getSetting(store.reader, KEY)) ?? RUNNING,
    async requireBlob(tx, epoch, digest) {
      const row = await tx.forShare.get<{ value: string }>(FIND, KEY);
      if (row?.value === epoch && epoch !== RUNNING) return;
      // File access within a transaction, but only if a collection is running or has run since.
      if (await blobs.stat(digest)) return;
      throw new OciError('UNAVAILABLE', 'garbage collection has just deleted this blob as unused; push it again', {
        headers: { 'retry-after': '1' },
      });
    },
  };
}

/** A backup is being created, so no file of a blob may be deleted. */
export class BlobsHeldError extends Error {
  override readonly name = 'BlobsHeldError';
}

/** Locks the row exclusively until the transaction ends. Throws a BlobsHeldError while a backup is being created. */
export async function lockForGc(tx: Transaction, now: number): Promise<void> {
  await putSetting(tx, KEY, RUNNING);
  if (!(await areBlobsHeld(tx, now))) return;
  throw new BlobsHeldError('a backup is being created, and needs all blobs: collect garbage again when it is finished');
}

/** Call it after the last deletion. If a collection is killed before, uploads check the file until the next one ends. */
export const endGc = (tx: Transaction): Promise<void> => putSetting(tx, KEY, randomUUID());
