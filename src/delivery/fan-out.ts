import { ancestorsOf } from '../base/uid.ts';
import { wakeSink } from '../domains/events/delivery-rows.ts';
import { type BulkInsert, columnCount } from '../store/bulk-insert.ts';
import { batchPlaceholders, parameterBatches } from '../store/parameter-batches.ts';
import type { Row, Store, Transaction, Value } from '../store/store.ts';

const IS_ANY = 'SELECT id FROM outbox WHERE expires IS NULL LIMIT 1';
const TAKE_TURN = "SELECT key FROM setting WHERE key = 'delivery.turn'";
const WAITING = 'SELECT id, subject, scope, audience FROM outbox WHERE expires IS NULL ORDER BY id LIMIT $1';
const LISTENERS = `SELECT subscription, parent, since FROM sink
  WHERE disabled IS NULL AND parent IN (${batchPlaceholders(1)}) ORDER BY subscription`;
const DELIVERIES: BulkInsert = {
  into: 'delivery',
  columns: {
    ...{ subscription: 'text', event: 'integer', subject: 'text', queued: 'integer' },
    ...{ state: 'text', attempts: 'integer', due: 'integer' },
  },
};
const HAND_ON = `UPDATE outbox SET expires = $1 WHERE id IN (${batchPlaceholders(2)})`;

/** How many events are taken at once, and with how many deliveries a transaction ends early. */
const EVENTS = 200;
const MAX_DELIVERIES = 5000;

/** How long an event is kept that nobody hears, for people who look into what happened. */
const UNHEARD_MS = 60 * 60 * 1000;

interface WaitingEvent extends Row {
  readonly id: number;
  readonly subject: string;
  readonly scope: string;
  readonly audience: string;
}

interface Listener extends Row {
  readonly subscription: string;
  readonly parent: string;
  readonly since: number;
}

export interface FanOutOptions {
  readonly now: number;
  /** How long to wait before the first attempt. */
  readonly delayMs: number;
  readonly retentionMs: number;
}

/**
 * Hands the events that wait in the outbox to the subscriptions that hear them, and answers how many there were.
 *
 * Rows of the outbox become visible in another order than that of their ids, so nothing here remembers a last id: an
 * event waits until the transaction that makes its deliveries also marks it. One server does this at a time, so that
 * deliveries are numbered in the order of the events. For one resource that is the order of its changes: each holds
 * the resource until it commits, and takes the id of its event before.
 */
export async function fanOut(store: Store, { now, delayMs, retentionMs }: FanOutOptions): Promise<number> {
  if (!(await store.reader.get(IS_ANY))) return 0;
  return store.write(async (tx) => {
    if (!(await tx.forUpdateSkipLocked.get(TAKE_TURN))) return 0;
    const events = await tx.all<WaitingEvent>(WAITING, EVENTS);
    const listeners = await listenersOf(tx, events);
    const rows: Value[] = [];
    const heard: number[] = [];
    const unheard: number[] = [];
    const woken = new Set<string>();
    for (const event of events) {
      if (rows.length / columnCount(DELIVERIES) > MAX_DELIVERIES) break;
      const hearing = event.audience === 'customer' ? listeners(event) : [];
      for (const { subscription } of hearing) {
        rows.push(subscription, event.id, event.subject, now, 'pending', 0, now + delayMs);
        woken.add(subscription);
      }
      (hearing.length > 0 ? heard : unheard).push(event.id);
    }
    tx.insertUnawaited(DELIVERIES, rows);
    await handOn(tx, heard, now + retentionMs);
    await handOn(tx, unheard, now + UNHEARD_MS);
    // In one order everywhere, so that nobody waits for one another.
    for (const subscription of [...woken].sort()) await wakeSink(tx, subscription, now + delayMs);
    return heard.length + unheard.length;
  });
}

async function handOn(tx: Transaction, ids: readonly number[], expires: number): Promise<void> {
  for (const some of parameterBatches(ids.map(String))) await tx.run(HAND_ON, expires, ...some);
}

/** Tells for each of `events` which subscriptions hear it: those of its group and of the groups above that. */
async function listenersOf(tx: Transaction, events: readonly WaitingEvent[]) {
  const places = new Set(events.flatMap(({ scope }) => [...ancestorsOf(scope), scope]));
  const byPlace = new Map<string, Listener[]>();
  for (const some of parameterBatches([...places])) {
    for (const listener of await tx.all<Listener>(LISTENERS, ...some)) {
      const known = byPlace.get(listener.parent);
      if (known) known.push(listener);
      else byPlace.set(listener.parent, [listener]);
    }
  }
  return ({ id, scope }: WaitingEvent): Listener[] =>
    [...ancestorsOf(scope), scope].flatMap((place) => byPlace.get(place) ?? []).filter(({ since }) => since < id);
}
