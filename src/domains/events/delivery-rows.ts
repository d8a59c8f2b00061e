import { create } from '@bufbuild/protobuf';
import { timestampFromMs } from '@bufbuild/protobuf/wkt';
import type { MaybePromise } from '../../base/maybe-promise.ts';
import { parentOf, rangeBelow, suffixOf } from '../../base/uid.ts';
import { type Delivery, DeliverySchema, DeliveryState } from '../../contract/gen/wharfinger/events/v1/deliveries_pb.js';
import { batchPlaceholders, parameterBatches } from '../../store/parameter-batches.ts';
import type { Reader, Row, Transaction } from '../../store/store.ts';

/** What the state of a delivery is called in the database. */
export type StateName = 'pending' | 'delivered' | 'failed';

interface DeliveryRow extends Row {
  readonly id: number;
  readonly subscription: string;
  readonly queued: number;
  readonly state: StateName;
  readonly attempts: number;
  readonly due: number | null;
  readonly attempted: number | null;
  readonly duration: number | null;
  readonly status: number | null;
  readonly error: string | null;
  readonly event_id: string;
  readonly type: string;
  readonly subject: string;
  readonly time: number;
}

/** A place in the list: below it, the list goes on. */
export interface Position {
  readonly subscription: string;
  readonly id: number;
}

const SELECT = `SELECT d.id, d.subscription, d.queued, d.state, d.attempts, d.due, d.attempted, d.duration, d.status,
  d.error, d.subject, o.event_id, o.type, o.time FROM delivery d JOIN outbox o ON o.id = d.event`;
const FIND = `${SELECT} WHERE d.id = $1 AND d.subscription = $2`;
const WITHIN = 'd.subscription >= $1 AND d.subscription < $2 AND (d.subscription, d.id) < ($3, $4)';
const NEWEST_FIRST = 'ORDER BY d.subscription DESC, d.id DESC LIMIT $5';
const LIST = `${SELECT} WHERE ${WITHIN} ${NEWEST_FIRST}`;
const LIST_STATE = `${SELECT} WHERE d.state = $6 AND ${WITHIN} ${NEWEST_FIRST}`;

// What is pending is sent anyway.
const DONE_SINCE = `SELECT d.subscription, d.id FROM delivery d JOIN outbox o ON o.id = d.event
  WHERE ${WITHIN} AND d.state IN ('failed', $6) AND o.time >= $7 ${NEWEST_FIRST}`;
const REPLAY = `UPDATE delivery SET state = 'pending', attempts = 0, due = $1
  WHERE due IS NULL AND id IN (${batchPlaceholders(2)})`;
// Also held where nothing changes: whoever works on the sink then waits with the look for more until this is committed.
const WAKE = `UPDATE sink SET due = CASE
    WHEN lease IS NOT NULL OR disabled IS NOT NULL OR due <= $2 THEN due
    WHEN rest > $2 THEN rest
    ELSE $2
  END WHERE subscription = $1`;

const stateNames: Readonly<Record<DeliveryState, StateName | undefined>> = {
  [DeliveryState.UNSPECIFIED]: undefined,
  [DeliveryState.PENDING]: 'pending',
  [DeliveryState.DELIVERED]: 'delivered',
  [DeliveryState.FAILED]: 'failed',
};

const states: Readonly<Record<StateName, DeliveryState>> = {
  pending: DeliveryState.PENDING,
  delivered: DeliveryState.DELIVERED,
  failed: DeliveryState.FAILED,
};

/** The uid of a delivery is that of its subscription and the number of its row. */
const uidOf = ({ subscription, id }: Position): string => `${subscription}/${id.toString(16).padStart(16, '0')}`;

export function positionOf(uid: string): Position | undefined {
  const id = Number.parseInt(suffixOf(uid), 16);
  return Number.isSafeInteger(id) ? { subscription: parentOf(uid), id } : undefined;
}

export async function findDelivery(db: Reader, uid: string): Promise<Delivery | undefined> {
  const at = positionOf(uid);
  const row = at && (await db.get<DeliveryRow>(FIND, at.id, at.subscription));
  return row && toMessage(row);
}

export interface Selection {
  /** A subscription, or a group: then all subscriptions below it. */
  readonly parent: string;
  readonly state: DeliveryState;
  readonly after: Position | undefined;
  readonly limit: number;
}

/** Subscription by subscription, the latest first: the way an index runs backward. */
export async function listDeliveries(db: Reader, { parent, state, after, limit }: Selection): Promise<Delivery[]> {
  const bounds = boundsOf(parent, after, limit);
  const name = stateNames[state];
  const rows =
    name === undefined
      ? await db.all<DeliveryRow>(LIST, ...bounds)
      : await db.all<DeliveryRow>(LIST_STATE, ...bounds, name);
  return rows.map(toMessage);
}

/** The parameters of WITHIN and NEWEST_FIRST. */
function boundsOf(parent: string, after: Position | undefined, limit: number) {
  const [, high] = rangeBelow(parent);
  const { subscription, id } = after ?? { subscription: high, id: 0 };
  return [parent, high, subscription, id, limit] as const;
}

export interface Past {
  readonly parent: string;
  /** Milliseconds since the epoch. */
  readonly since: number;
  readonly failedOnly: boolean;
  readonly after: Position | undefined;
  readonly limit: number;
}

/** The deliveries that are done with, of events since a time. */
export async function findDone(db: Reader, { parent, since, failedOnly, after, limit }: Past): Promise<Position[]> {
  const also: StateName = failedOnly ? 'failed' : 'delivered';
  return db.all<Row & Position>(DONE_SINCE, ...boundsOf(parent, after, limit), also, since);
}

/** Sends them once more, from the first attempt on. */
export async function replay(tx: Transaction, deliveries: readonly Position[], now: number): Promise<void> {
  for (const ids of parameterBatches(deliveries.map(({ id }) => String(id)))) await tx.run(REPLAY, now, ...ids);
  // In one order everywhere, so that nobody waits for one another.
  const subscriptions = new Set(deliveries.map(({ subscription }) => subscription));
  for (const subscription of [...subscriptions].sort()) await wakeSink(tx, subscription, now);
}

/** Says that something waits for a subscription from `now` on. Whoever works on it sees by itself. */
export const wakeSink = (tx: Transaction, subscription: string, now: number): MaybePromise<number> =>
  tx.run(WAKE, subscription, now);

function toMessage(row: DeliveryRow): Delivery {
  return create(DeliverySchema, {
    uid: uidOf(row),
    state: states[row.state],
    eventId: row.event_id,
    eventType: row.type,
    subject: row.subject,
    eventTime: timestampFromMs(row.time),
    attempts: row.attempts,
    durationMs: row.duration ?? 0,
    status: row.status ?? 0,
    error: row.error ?? '',
    createTime: timestampFromMs(row.queued),
    ...(row.attempted !== null && { attemptTime: timestampFromMs(row.attempted) }),
    ...(row.due !== null && { nextAttemptTime: timestampFromMs(row.due) }),
  });
}
