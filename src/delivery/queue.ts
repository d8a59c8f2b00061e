import { randomUUID } from 'node:crypto';
import type { StateName } from '../domains/events/delivery-rows.ts';
import type { Reader, Row, Store, Transaction } from '../store/store.ts';
import { EVENT_COLUMNS, type EventRow } from './cloud-event.ts';

/** The right to send to one subscription until the lease ends. */
export interface Claim {
  readonly subscription: string;
  readonly lease: string;
  /** How many attempts have failed since the last that did not. */
  readonly failures: number;
}

/** A delivery that can be sent now, with its event. */
export interface DueDelivery extends EventRow {
  readonly id: number;
  readonly attempts: number;
}

/** What became of a delivery. */
export interface Outcome {
  readonly id: number;
  readonly state: StateName;
  readonly attempts: number;
  readonly due: number | undefined;
  /** When it was sent, and how long that took. */
  readonly attempted: number;
  readonly durationMs: number;
  readonly status: number | undefined;
  readonly error: string | undefined;
}

/** How a sink fares after a round. */
export interface Health extends Row {
  readonly failures: number;
  readonly failing_since: number | null;
}

export interface Settlement {
  readonly outcomes: readonly Outcome[];
  /** Until when the sink is to be left alone; 0 for not at all. */
  readonly rest: number;
  readonly now: number;
  /** Looks at how the sink fares after all this, and says why it is to be disabled, if so. */
  verdict(health: Health): string | undefined;
  /** Part of the same transaction when it is. */
  disabled(tx: Transaction, health: Health, reason: string): Promise<void>;
}

const IS_ANY = 'SELECT subscription FROM sink WHERE due <= $1 LIMIT 1';
const NEXT = 'SELECT min(due) AS due FROM sink WHERE due IS NOT NULL';
const FREE = (health: string) =>
  `SELECT subscription, failures FROM sink WHERE due <= $1 AND ${health} ORDER BY due LIMIT $2`;
const FREE_WORKING = FREE('failures = 0');
const FREE_FAILING = FREE('failures > 0');
const LEASE = 'UPDATE sink SET lease = $2, due = $3 WHERE subscription = $1';
const IS_HELD = 'SELECT lease FROM sink WHERE subscription = $1 AND lease = $2';
const HOLD = 'SELECT failures, failing_since FROM sink WHERE subscription = $1 AND lease = $2';
// What happens to one subject arrives in its order: nothing passes an earlier event about it that waits to be sent again.
const DUE = `SELECT d.id, d.attempts, ${EVENT_COLUMNS} FROM delivery d JOIN outbox o ON o.id = d.event
  WHERE d.state = 'pending' AND d.subscription = $1 AND d.due <= $2 AND NOT EXISTS (
    SELECT 1 FROM delivery e
    WHERE e.subscription = d.subscription AND e.subject = d.subject AND e.id < d.id AND e.due > $2
  ) ORDER BY d.id LIMIT $3`;
const LATER = "SELECT min(due) AS due FROM delivery WHERE state = 'pending' AND subscription = $1 AND due > $2";
const RECORD = `UPDATE delivery SET state = $2, attempts = $3, due = $4, attempted = $5, duration = $6, status = $7,
  error = $8 WHERE id = $1`;
const SETTLE = `UPDATE sink SET lease = NULL, due = $2, rest = $3, failures = $4, failing_since = $5, disabled = $6,
  reason = $7 WHERE subscription = $1`;

/** How many sinks there is room for: those that work, and those that failed the last time. */
export interface Room {
  readonly working: number;
  readonly failing: number;
}

/** Takes subscriptions for which something is due, those that wait longest first. */
export async function claim(store: Store, { working, failing }: Room, now: number, leaseMs: number): Promise<Claim[]> {
  if (working + failing <= 0 || !(await store.reader.get(IS_ANY, now))) return [];
  return store.write(async (tx) => {
    const lease = randomUUID();
    const take = async (text: string, limit: number) =>
      tx.forUpdateSkipLocked.all<Row & Omit<Claim, 'lease'>>(text, now, limit);
    const free = [...(await take(FREE_WORKING, working)), ...(await take(FREE_FAILING, failing))];
    for (const { subscription } of free) await tx.run(LEASE, subscription, lease, now + leaseMs);
    return free.map(({ subscription, failures }) => ({ subscription, lease, failures }));
  });
}

/** When something is next due anywhere. */
export const nextDue = async (db: Reader): Promise<number | undefined> =>
  (await db.get<{ due: number | null }>(NEXT))?.due ?? undefined;

export const dueDeliveries = async (db: Reader, subscription: string, now: number, limit: number) =>
  db.all<DueDelivery>(DUE, subscription, now, limit);

/** False once the subscription is deleted, or another server has taken over. */
export const isHeld = async (db: Reader, { subscription, lease }: Claim): Promise<boolean> =>
  (await db.get(IS_HELD, subscription, lease)) !== undefined;

/** Records what became of deliveries and gives the subscription back; nothing happens when it was taken away meanwhile. */
export async function settle(store: Store, { subscription, lease }: Claim, settlement: Settlement): Promise<void> {
  const { outcomes, rest, now } = settlement;
  await store.write(async (tx) => {
    const before = await tx.forUpdate.get<Health>(HOLD, subscription, lease);
    if (!before) return;
    for (const outcome of outcomes) await record(tx, outcome);
    const health = outcomes.reduce(healthAfter, before);
    const reason = settlement.verdict(health);
    const due = reason === undefined ? await dueAfter(tx, subscription, rest, now) : undefined;
    const disabled = reason === undefined ? null : now;
    const { failures, failing_since } = health;
    await tx.run(SETTLE, subscription, due ?? null, rest, failures, failing_since, disabled, reason ?? null);
    if (reason !== undefined) await settlement.disabled(tx, health, reason);
  });
}

const record = (tx: Transaction, { id, state, attempts, due, attempted, durationMs, status, error }: Outcome) =>
  tx.run(RECORD, id, state, attempts, due ?? null, attempted, durationMs, status ?? null, error ?? null);

const healthAfter = (health: Health, { state, attempted }: Outcome): Health =>
  state === 'delivered'
    ? { failures: 0, failing_since: null }
    : { failures: health.failures + 1, failing_since: health.failing_since ?? attempted };

/** Asked while the subscription is held, so that nobody can add a delivery that is not seen here. */
async function dueAfter(tx: Transaction, uid: string, rest: number, now: number): Promise<number | undefined> {
  const [isDue] = await dueDeliveries(tx, uid, now, 1);
  const due = isDue ? now : (await tx.get<{ due: number | null }>(LATER, uid, now))?.due;
  return due == null ? undefined : Math.max(due, rest);
}
