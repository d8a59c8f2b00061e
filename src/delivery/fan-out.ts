import { ancestorsOf, type ParentUid, ROOT, type Uid } from '../base/uid.ts';
import { wakeSink } from '../domains/events/delivery-rows.ts';
import { type BulkInsert, columnCount } from '../store/bulk-insert.ts';
import { batchPlaceholders, parameterBatches } from '../store/parameter-batches.ts';
import type { Row, Store, Transaction, Value } from '../store/store.ts';
import type { FindSubscriptionAccess, SubscriptionAccess } from './subscription-access.ts';

const IS_ANY_WAITING = 'SELECT id FROM outbox WHERE expires IS NULL LIMIT 1';
const LOCK = "SELECT key FROM setting WHERE key = 'delivery.turn'";
const WAITING = 'SELECT id, type, subject, scope, audience FROM outbox WHERE expires IS NULL ORDER BY id LIMIT $1';
const SUBSCRIBERS = `SELECT subscription, parent, since, maker, paused FROM sink
  WHERE disabled IS NULL AND parent IN (${batchPlaceholders(1)}) ORDER BY subscription`;
const DELIVERIES: BulkInsert = {
  into: 'delivery',
  columns: {
    ...{ subscription: 'text', event: 'integer', subject: 'text', queued: 'integer' },
    ...{ state: 'text', attempts: 'integer', due: 'integer' },
  },
};
const PAUSE = 'UPDATE sink SET paused = $2 WHERE subscription = $1 AND paused IS NULL';
const RESUME = 'UPDATE sink SET paused = NULL, rest = 0 WHERE subscription = $1 AND paused IS NOT NULL';
const SET_EXPIRY = `UPDATE outbox SET expires = $1 WHERE id IN (${batchPlaceholders(2)})`;

/** The most events of one transaction. */
const MAX_EVENTS = 200;
/** After this many deliveries, the remaining events wait for the next transaction. */
const MAX_DELIVERIES = 5000;

/** How long an event without subscribers is kept, for troubleshooting. */
const UNSUBSCRIBED_RETENTION_MS = 60 * 60 * 1000;

interface WaitingEvent extends Row {
  readonly id: number;
  readonly type: string;
  readonly subject: string;
  /** ROOT for the deletion of an organization. Empty for an event of an identity, which belongs to no group. */
  readonly scope: ParentUid | '';
  readonly audience: string;
}

interface SubscriberColumns {
  readonly subscription: Uid;
  readonly parent: Uid;
  /** The last event that it does not receive. */
  readonly since: number;
  readonly maker: string | null;
  readonly paused: number | null;
}

interface Subscriber extends SubscriberColumns {
  readonly access: SubscriptionAccess;
}

export interface FanOutOptions {
  readonly now: number;
  /** The delay before the first attempt. */
  readonly delayMs: number;
  readonly retentionMs: number;
  readonly accessOf: FindSubscriptionAccess;
  /** Called in the same transaction for a subscription that was not paused before. */
  onPause(tx: Transaction, subscription: string, reason: string): Promise<void>;
}

/**
 * Creates the deliveries of the events that wait in the outbox, and returns how many events there were.
 *
 * - Rows of the outbox become visible in another order than that of their ids, so it cannot continue after a last id.
 *   An event waits until `expires` is set, in the transaction that creates its deliveries.
 * - One server does this at a time, so that the ids of deliveries have the order of the events. For one resource this
 *   is the order of its changes: each change locks the resource until it commits, and gets the id of its event before.
 * - A subscription receives what its maker may read now. While its maker has no access, it is paused: its events are
 *   skipped for good, because they would otherwise be queued without end.
 */
export async function fanOut(store: Store, options: FanOutOptions): Promise<number> {
  const { now, delayMs, retentionMs, accessOf, onPause } = options;
  if (!(await store.reader.get(IS_ANY_WAITING))) return 0;
  return store.write(async (tx) => {
    if (!(await tx.forUpdateSkipLocked.get(LOCK))) return 0;
    const events = await tx.all<WaitingEvent>(WAITING, MAX_EVENTS);
    const subscribersTo = await findSubscribers(tx, events, accessOf);
    const rows: Value[] = [];
    const subscribed: number[] = [];
    const unsubscribed: number[] = [];
    const reached = new Map<string, Subscriber>();
    const wakeUids = new Set<string>();
    for (const event of events) {
      if (rows.length / columnCount(DELIVERIES) > MAX_DELIVERIES) break;
      const subscribers = event.audience === 'customer' ? subscribersTo(event) : [];
      let isReceived = false;
      for (const subscriber of subscribers) {
        const { subscription, access } = subscriber;
        reached.set(subscription, subscriber);
        if (access.pauseReason !== undefined || !access.mayReceive(event.type, event.scope)) continue;
        rows.push(subscription, event.id, event.subject, now, 'pending', 0, now + delayMs);
        wakeUids.add(subscription);
        isReceived = true;
      }
      (isReceived ? subscribed : unsubscribed).push(event.id);
    }
    tx.insertUnawaited(DELIVERIES, rows);
    await setExpiry(tx, subscribed, now + retentionMs);
    await setExpiry(tx, unsubscribed, now + UNSUBSCRIBED_RETENTION_MS);
    // Sorted, as everywhere, so that transactions do not deadlock.
    for (const subscription of [...reached.keys()].sort()) {
      const { paused, access } = reached.get(subscription) as Subscriber;
      if (access.pauseReason === undefined) {
        if (paused !== null) await tx.run(RESUME, subscription);
        if (paused !== null || wakeUids.has(subscription)) await wakeSink(tx, subscription, now + delayMs);
      } else if (paused === null && (await tx.run(PAUSE, subscription, now)) > 0) {
        await onPause(tx, subscription, access.pauseReason);
      }
    }
    return subscribed.length + unsubscribed.length;
  });
}

async function setExpiry(tx: Transaction, ids: readonly number[], expires: number): Promise<void> {
  for (const batch of parameterBatches(ids.map(String))) await tx.run(SET_EXPIRY, expires, ...batch);
}

/**
 * Returns a function that finds the subscriptions to one of `events`: those of its group and of the ancestors of it. Their
 * access is not read in the transaction, so it can only be newer than the events.
 */
async function findSubscribers(
  tx: Transaction,
  events: readonly WaitingEvent[],
  accessOf: FindSubscriptionAccess,
): Promise<(event: WaitingEvent) => Subscriber[]> {
  const groups = new Set(events.flatMap(({ scope }) => groupsOf(scope)));
  const byGroup = new Map<string, Subscriber[]>();
  for (const batch of parameterBatches([...groups])) {
    for (const row of await tx.all<Row & SubscriberColumns>(SUBSCRIBERS, ...batch)) {
      const subscriber = { ...row, access: await accessOf(row.maker, row.parent) };
      const subscribers = byGroup.get(row.parent);
      if (subscribers) subscribers.push(subscriber);
      else byGroup.set(row.parent, [subscriber]);
    }
  }
  return ({ id, scope }) =>
    groupsOf(scope)
      .flatMap((group) => byGroup.get(group) ?? [])
      .filter(({ since }) => since < id);
}

const groupsOf = (scope: WaitingEvent['scope']): Uid[] =>
  scope === ROOT || scope === '' ? [] : [...ancestorsOf(scope), scope];
