import type { Store } from '../store/store.ts';

/** The most rows that one transaction deletes, because it makes others wait. */
const BATCH = 500;

// The ids of deliveries are in the order of `queued`, so only the rows with the lowest ids need to be read.
const PRUNE_DELIVERIES = `DELETE FROM delivery
  WHERE id IN (SELECT id FROM delivery ORDER BY id LIMIT ${BATCH}) AND queued <= $1`;
const PRUNE_EVENTS = `DELETE FROM outbox
  WHERE id IN (SELECT id FROM outbox WHERE expires <= $1 ORDER BY expires LIMIT ${BATCH})`;
// `next` is in microseconds. What is forgotten begins again with one request, unless its sink has accepted one.
const PRUNE_ADDRESSES = `DELETE FROM sink_address WHERE (organization, address) IN (
  SELECT organization, address FROM sink_address WHERE next <= $1 LIMIT ${BATCH}
)`;
const ADDRESS_RETENTION_MS = 24 * 60 * 60 * 1000;

/** Deletes old deliveries and events, and addresses that got no requests for a day, in batches. */
export async function prune(store: Store, now: number, retentionMs: number, stopping: AbortSignal): Promise<void> {
  const steps = [
    { text: PRUNE_DELIVERIES, before: now - retentionMs },
    { text: PRUNE_EVENTS, before: now },
    { text: PRUNE_ADDRESSES, before: (now - ADDRESS_RETENTION_MS) * 1000 },
  ];
  for (const { text, before } of steps) {
    let deleted = BATCH;
    while (deleted === BATCH && !stopping.aborted) deleted = await store.write((tx) => tx.run(text, before));
  }
}
