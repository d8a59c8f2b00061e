import { putSetting } from '../../../store/settings.ts';
import type { Reader, Store, Transaction } from '../../../store/store.ts';

/** The setting whose row garbage collection locks while it deletes files (src/oci/gc/gc-lock.ts). */
export const COLLECTION = 'registry.collection';

const PREFIX = 'backup.hold.';
/** The first text after all texts that begin with the prefix. */
const AFTER_PREFIX = 'backup.hold/';
const LIVE = 'SELECT key, value FROM setting WHERE key >= $1 AND key < $2';
const LOCK = 'SELECT value FROM setting WHERE key = $1';

/** How long a hold lasts unless it is renewed. */
export const HOLD_MS = 5 * 60_000;

/**
 * Keeps garbage collection from deleting files, until `expires`. Waits for a deletion that is running: a snapshot of the
 * database that is taken afterwards refers only to files that stay until the hold ends.
 */
export async function holdBlobs(store: Store, id: string, expires: number): Promise<void> {
  await store.write(async (tx) => {
    await tx.forShare.get(LOCK, COLLECTION);
    await putSetting(tx, PREFIX + id, String(expires));
  });
}

export async function releaseBlobs(store: Store, id: string): Promise<void> {
  await store.write((tx) => tx.run('DELETE FROM setting WHERE key = $1', PREFIX + id));
}

/** Whether a hold exists. Garbage collection reads it while it has the lock. */
export const areBlobsHeld = async (db: Reader, now: number): Promise<boolean> => (await findHolds(db, now)).length > 0;

/** Returns the ids of the holds that have not expired. */
export async function findHolds(db: Reader, now: number): Promise<string[]> {
  const holds = await db.all<{ key: string; value: string }>(LIVE, PREFIX, AFTER_PREFIX);
  return holds.filter(({ value }) => Number(value) > now).map(({ key }) => key.slice(PREFIX.length));
}

/** Deletes the holds that a copy of the database contains, and those of processes that were killed. */
export async function deleteHolds(tx: Transaction, expiredBefore = Number.MAX_SAFE_INTEGER): Promise<void> {
  const holds = await tx.all<{ key: string; value: string }>(LIVE, PREFIX, AFTER_PREFIX);
  for (const { key, value } of holds) {
    if (Number(value) < expiredBefore) await tx.run('DELETE FROM setting WHERE key = $1', key);
  }
}
