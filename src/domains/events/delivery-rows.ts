import { create } from '@bufbuild/protobuf';
import { timestampFromMs } from '@bufbuild/protobuf/wkt';
import type { MaybePromise } from '../../base/maybe-promise.ts';
import { descendantRange, parentOf, suffixOf } from '../../base/uid.ts';
import { type Delivery, DeliverySchema, DeliveryState } from '../../contract/gen/wharfinger/events/v1/deliveries_pb.js';
import { batchPlaceholders, parameterBatches } from '../../store/parameter-batches.ts';
import type { Reader, Row, Transaction } from '../../store/store.ts';

/** A delivery state as the database stores it. */
export type DeliveryStateName = 'pending' | 'delivered' | 'failed';

interface DeliveryRow extends Row {
  readonly id: number;
  readonly subscription: string;
  readonly queued: number;
  readonly state: DeliveryStateName;
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

/** The key of a delivery. It is also the cursor of lists, which are in descending order of subscription and id. */
export interface DeliveryPosition {
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

// Pending deliveries are left out, because they are sent anyway.
const FINISHED_SINCE = `SELECT d.subscription, d.id FROM delivery d JOIN outbox o ON o.id = d.event
  WHERE ${WITHIN} AND d.state IN ('failed', $6) AND o.time >= $7 ${NEWEST_FIRST}`;
const REPLAY = `UPDATE delivery SET state = 'pending', attempts = 0, due = $1
  WHERE due IS NULL AND id IN (${batchPlaceholders(2)})`;
// The row is locked even when `due` does not change. The worker that holds the lease locks it before it looks for more
// deliveries, so it waits for this commit.
const WAKE = `UPDATE sink SET due = CASE
    WHEN lease IS NOT NULL OR disabled IS NOT NULL OR due <= $2 THEN due
    WHEN rest > $2 THEN rest
    ELSE $2
  END WHERE subscription = $1`;

const stateNames: Readonly<Record<DeliveryState, DeliveryStateName | undefined>> = {
  [DeliveryState.UNSPECIFIED]: undefined,
  [DeliveryState.PENDING]: 'pending',
  [DeliveryState.DELIVERED]: 'delivered',
  [DeliveryState.FAILED]: 'failed',
};

const states: Readonly<Record<DeliveryStateName, DeliveryState>> = {
  pending: DeliveryState.PENDING,
  delivered: DeliveryState.DELIVERED,
  failed: DeliveryState.FAILED,
};

/** The uid of a delivery is the uid of its subscription and the id of its row. */
const uidOf = ({ subscription, id }: DeliveryPosition): string =>
  `${subscription}/${id.toString(16).padStart(16, '0')}`;

export function positionOf(uid: string): DeliveryPosition | undefined {
  const id = Number.parseInt(suffixOf(uid), 16);
  return Number.isSafeInteger(id) ? { subscription: parentOf(uid), id } : undefined;
}

export async function findDelivery(db: Reader, uid: string): Promise<Delivery | undefined> {
  const position = positionOf(uid);
  const row = position && (await db.get<DeliveryRow>(FIND, position.id, position.subscription));
  return row && toMessage(row);
}

export interface DeliverySelection {
  /** The uid of a subscription, or of a group, which selects all subscriptions below it. */
  readonly parent: string;
  readonly state: DeliveryState;
  readonly after: DeliveryPosition | undefined;
  readonly limit: number;
}

/** Lists deliveries by subscription, newest first. This is the reverse order of an index. */
export async function listDeliveries(
  db: Reader,
  { parent, state, after, limit }: DeliverySelection,
): Promise<Delivery[]> {
  const bounds = boundsOf(parent, after, limit);
  const name = stateNames[state];
  const rows =
    name === undefined
      ? await db.all<DeliveryRow>(LIST, ...bounds)
      : await db.all<DeliveryRow>(LIST_STATE, ...bounds, name);
  return rows.map(toMessage);
}

/** The parameters of WITHIN and NEWEST_FIRST. */
function boundsOf(parent: string, after: DeliveryPosition | undefined, limit: number) {
  const [, high] = descendantRange(parent);
  const { subscription, id } = after ?? { subscription: high, id: 0 };
  return [parent, high, subscription, id, limit] as const;
}

export interface ReplaySelection {
  readonly parent: string;
  /** The earliest event time, in milliseconds. */
  readonly since: number;
  readonly failedOnly: boolean;
  readonly after: DeliveryPosition | undefined;
  readonly limit: number;
}

/** The deliveries that have failed, and unless `failedOnly` also those that have succeeded. */
export async function findFinishedDeliveries(
  db: Reader,
  { parent, since, failedOnly, after, limit }: ReplaySelection,
): Promise<DeliveryPosition[]> {
  const otherState: DeliveryStateName = failedOnly ? 'failed' : 'delivered';
  return db.all<Row & DeliveryPosition>(FINISHED_SINCE, ...boundsOf(parent, after, limit), otherState, since);
}

/** Queues finished deliveries again, as if they had never been attempted. */
export async function replayDeliveries(
  tx: Transaction,
  deliveries: readonly DeliveryPosition[],
  now: number,
): Promise<void> {
  for (const ids of parameterBatches(deliveries.map(({ id }) => String(id)))) await tx.run(REPLAY, now, ...ids);
  // Sorted, because all transactions must lock sinks in the same order to avoid deadlocks.
  const subscriptions = new Set(deliveries.map(({ subscription }) => subscription));
  for (const subscription of [...subscriptions].sort()) await wakeSink(tx, subscription, now);
}

/** Makes a sink due at `now`, or when its rest ends. A worker that holds its lease finds new deliveries by itself. */
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
