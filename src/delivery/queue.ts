import { randomUUID } from 'node:crypto';
import type { DeliveryStateName } from '../domains/events/delivery-rows.ts';
import type { Reader, Row, Store, Transaction } from '../store/store.ts';
import { EVENT_COLUMNS, type EventRow } from './cloud-event.ts';

/** Until it expires, only the owner of the lease sends to the sink of the subscription. */
export interface SinkLease {
  readonly id: string;
  readonly subscription: string;
  /** How many attempts have failed in a row. */
  readonly failures: number;
}

/** A delivery that can be sent now, with its event. */
export interface DueDelivery extends EventRow {
  readonly id: number;
  readonly attempts: number;
}

/** The new state of a delivery after an attempt. */
export interface AttemptOutcome {
  readonly id: number;
  readonly state: DeliveryStateName;
  readonly attempts: number;
  readonly due: number | undefined;
  /** When it was sent. */
  readonly attempted: number;
  readonly durationMs: number;
  readonly status: number | undefined;
  readonly error: string | undefined;
}

/** How many attempts to reach a sink have failed in a row, and since when. */
export interface SinkFailures extends Row {
  readonly failures: number;
  readonly failing_since: number | null;
}

export interface Settlement {
  readonly outcomes: readonly AttemptOutcome[];
  /** The time before which nothing is sent to the sink; 0 if there is none. */
  readonly pausedUntil: number;
  readonly now: number;
  /** Returns why the sink must be disabled after these failures, or undefined. */
  disableReason(failures: SinkFailures): string | undefined;
  /** Called in the same transaction when the sink is disabled. */
  onDisable(tx: Transaction, failures: SinkFailures, reason: string): Promise<void>;
}

const IS_ANY_DUE = 'SELECT subscription FROM sink WHERE due <= $1 LIMIT 1';
const NEXT_DUE = 'SELECT min(due) AS due FROM sink WHERE due IS NOT NULL';
const dueSinks = (condition: string) =>
  `SELECT subscription, failures FROM sink WHERE due <= $1 AND ${condition} ORDER BY due LIMIT $2`;
const DUE_WORKING = dueSinks('failures = 0');
const DUE_FAILING = dueSinks('failures > 0');
const LEASE = 'UPDATE sink SET lease = $2, due = $3 WHERE subscription = $1';
const FIND_LEASE = 'SELECT lease FROM sink WHERE subscription = $1 AND lease = $2';
const FIND_FAILURES = 'SELECT failures, failing_since FROM sink WHERE subscription = $1 AND lease = $2';
// Events about one subject are delivered in order: a delivery waits for an earlier one that will be retried.
const DUE_DELIVERIES = `SELECT d.id, d.attempts, ${EVENT_COLUMNS} FROM delivery d JOIN outbox o ON o.id = d.event
  WHERE d.state = 'pending' AND d.subscription = $1 AND d.due <= $2 AND NOT EXISTS (
    SELECT 1 FROM delivery e
    WHERE e.subscription = d.subscription AND e.subject = d.subject AND e.id < d.id AND e.due > $2
  ) ORDER BY d.id LIMIT $3`;
const LATER_DUE = "SELECT min(due) AS due FROM delivery WHERE state = 'pending' AND subscription = $1 AND due > $2";
const RECORD = `UPDATE delivery SET state = $2, attempts = $3, due = $4, attempted = $5, duration = $6, status = $7,
  error = $8 WHERE id = $1`;
const SETTLE = `UPDATE sink SET lease = NULL, due = $2, rest = $3, failures = $4, failing_since = $5, disabled = $6,
  reason = $7 WHERE subscription = $1`;

/** A number of sinks: those whose last attempt succeeded, and those whose last attempt failed. */
export interface SinkCounts {
  readonly working: number;
  readonly failing: number;
}

/** Leases sinks that have due deliveries, up to the limits. Those that have waited longest come first. */
export async function leaseDueSinks(
  store: Store,
  { working, failing }: SinkCounts,
  now: number,
  leaseMs: number,
): Promise<SinkLease[]> {
  if (working + failing <= 0 || !(await store.reader.get(IS_ANY_DUE, now))) return [];
  return store.write(async (tx) => {
    const id = randomUUID();
    const lock = async (text: string, limit: number) =>
      tx.forUpdateSkipLocked.all<Row & Omit<SinkLease, 'id'>>(text, now, limit);
    const sinks = [...(await lock(DUE_WORKING, working)), ...(await lock(DUE_FAILING, failing))];
    for (const { subscription } of sinks) await tx.run(LEASE, subscription, id, now + leaseMs);
    return sinks.map(({ subscription, failures }) => ({ id, subscription, failures }));
  });
}

/** Returns when the next delivery to any sink is due. */
export const nextDue = async (db: Reader): Promise<number | undefined> =>
  (await db.get<{ due: number | null }>(NEXT_DUE))?.due ?? undefined;

export const dueDeliveries = async (db: Reader, subscription: string, now: number, limit: number) =>
  db.all<DueDelivery>(DUE_DELIVERIES, subscription, now, limit);

/** False if the subscription was deleted, or the lease has expired and another server has leased the sink. */
export const isLeaseValid = async (db: Reader, { subscription, id }: SinkLease): Promise<boolean> =>
  (await db.get(FIND_LEASE, subscription, id)) !== undefined;

/** Records the outcomes of attempts and ends the lease. Does nothing if the lease is not valid any more. */
export async function settle(store: Store, { subscription, id }: SinkLease, settlement: Settlement): Promise<void> {
  const { outcomes, pausedUntil, now } = settlement;
  await store.write(async (tx) => {
    const before = await tx.forUpdate.get<SinkFailures>(FIND_FAILURES, subscription, id);
    if (!before) return;
    for (const outcome of outcomes) await record(tx, outcome);
    const after = outcomes.reduce(failuresAfter, before);
    const reason = settlement.disableReason(after);
    const due = reason === undefined ? await dueAfter(tx, subscription, pausedUntil, now) : undefined;
    const disabled = reason === undefined ? null : now;
    const { failures, failing_since } = after;
    await tx.run(SETTLE, subscription, due ?? null, pausedUntil, failures, failing_since, disabled, reason ?? null);
    if (reason !== undefined) await settlement.onDisable(tx, after, reason);
  });
}

const record = (tx: Transaction, { id, state, attempts, due, attempted, durationMs, status, error }: AttemptOutcome) =>
  tx.run(RECORD, id, state, attempts, due ?? null, attempted, durationMs, status ?? null, error ?? null);

const failuresAfter = (before: SinkFailures, { state, attempted }: AttemptOutcome): SinkFailures =>
  state === 'delivered'
    ? { failures: 0, failing_since: null }
    : { failures: before.failures + 1, failing_since: before.failing_since ?? attempted };

/** Must be called while the sink is locked, so that no delivery is added that this does not see. */
async function dueAfter(tx: Transaction, uid: string, pausedUntil: number, now: number): Promise<number | undefined> {
  const [isDue] = await dueDeliveries(tx, uid, now, 1);
  const due = isDue ? now : (await tx.get<{ due: number | null }>(LATER_DUE, uid, now))?.due;
  return due == null ? undefined : Math.max(due, pausedUntil);
}
