import { randomUUID } from 'node:crypto';
import type { Blobs } from '../../blobs/blobs.ts';
import { getSetting, putSetting, putSettingIfAbsent } from '../../store/settings.ts';
import type { Store, Transaction } from '../../store/store.ts';
import { OciError } from '../errors.ts';

const KEY = 'registry.collection';
const FIND = 'SELECT value FROM setting WHERE key = $1';
const RUNNING = 'running';

/**
 * Keeps uploads and garbage collection apart, also those of different processes. A collection removes files in
 * transactions that hold the fence alone; whoever links a fresh blob holds it together with all others who do. So each
 * sees what the other did: a link that was there first saves the file, and a file that went first is missed in time.
 */
export interface Fence {
  /** Call it before the file of a blob is put in its place. */
  enter(): Promise<string>;
  /** Call it, with what `enter` gave, in the transaction that links the blob. */
  pass(tx: Transaction, ticket: string, digest: string): Promise<void>;
}

export async function createFence(store: Store, blobs: Pick<Blobs, 'stat'>): Promise<Fence> {
  // There from the start, because only a row that is there can be held.
  await store.write((tx) => putSettingIfAbsent(tx, KEY, randomUUID()));
  return {
    enter: async () => (await getSetting(store.reader, KEY)) ?? RUNNING,
    async pass(tx, ticket, digest) {
      const row = await tx.forShare.get<{ value: string }>(FIND, KEY);
      if (row?.value === ticket && ticket !== RUNNING) return;
      // A look at the disk within a transaction, but only beside a collection.
      if (await blobs.stat(digest)) return;
      throw new OciError('UNAVAILABLE', 'the blob was removed as unused at this very moment; push it again', {
        headers: { 'retry-after': '1' },
      });
    },
  };
}

/** Holds the fence alone until the transaction ends. */
export const closeFence = (tx: Transaction): Promise<void> => putSetting(tx, KEY, RUNNING);

/** After the last removal; should a collection be killed before, uploads look at the disk until the next one ends. */
export const openFence = (tx: Transaction): Promise<void> => putSetting(tx, KEY, randomUUID());
