import type { Store } from '../store/store.ts';

/** A transaction keeps others waiting, so each takes away only so much. */
const STEP = 500;

// Deliveries are numbered as they are queued, so the oldest are the first; looking further would read all of them.
const PRUNE_DELIVERIES = `DELETE FROM delivery
  WHERE id IN (SELECT id FROM delivery ORDER BY id LIMIT ${STEP}) AND queued <= $1`;
const PRUNE_EVENTS = `DELETE FROM outbox
  WHERE id IN (SELECT id FROM outbox WHERE expires <= $1 ORDER BY expires LIMIT ${STEP})`;

/** Forgets deliveries and events that are too old, in small steps. */
export async function prune(store: Store, now: number, retentionMs: number, stopping: AbortSignal): Promise<void> {
  const steps = [
    { text: PRUNE_DELIVERIES, before: now - retentionMs },
    { text: PRUNE_EVENTS, before: now },
  ];
  for (const { text, before } of steps) {
    let gone = STEP;
    while (gone === STEP && !stopping.aborted) gone = await store.write((tx) => tx.run(text, before));
  }
}
