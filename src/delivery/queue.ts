import { randomUUID } from 'node:crypto';
import { rootOf } from '../base/uid.ts';
import type { DeliveryStateName } from '../domains/events/delivery-rows.ts';
import { subscriptions } from '../domains/events/subscriptions.ts';
import { find } from '../resource/read.ts';
import type { Reader, Row, Store, Transaction } from '../store/store.ts';
import {
  type AddressLimits,
  compareAddresses,
  createReservations,
  type Reservation,
  type SinkAddress,
  settleReservation,
} from './address-limits.ts';
import { EVENT_COLUMNS, type EventRow } from './cloud-event.ts';
import { sinkAddress } from './sink-url.ts';

/** Until it expires, only the owner of the lease sends to the sink of the subscription. */
export interface SinkLease {
  readonly id: string;
  readonly subscription: string;
  /** How many attempts have failed in a row. */
  readonly failures: number;
  /** As stored; null for a subscription from before makers were recorded. */
  readonly maker: string | null;
  /** When the sink accepted a delivery for the first time. */
  readonly accepted: number | null;
  /** Null if no handshake is required. 0 until the sink has permitted deliveries, then the time when it did. */
  readonly handshake: number | null;
  /** The requests per minute that the sink permitted by the handshake. */
  readonly allowedRate: number | null;
  readonly at: SinkAddress;
  readonly reservation: Reservation;
}

/** The most deliveries that are sent under one lease, so that other sinks get a lease too. */
const MAX_DELIVERIES = 20;

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

/** The response to the handshake: whether deliveries are permitted, and how many per minute if there is a limit. */
export interface HandshakeOutcome {
  readonly isPermitted: boolean;
  readonly allowedRate: number | undefined;
  readonly attempted: number;
}

/** What was done under a lease. */
export interface SendResult {
  readonly outcomes: readonly AttemptOutcome[];
  /** The ids of deliveries that the maker of the subscription may not read any more. They were not sent. */
  readonly withheld: readonly number[];
  readonly handshake: HandshakeOutcome | undefined;
  /** The time before which nothing is sent to the sink; 0 if there is none. */
  readonly waitUntil: number;
  /** Whether the sink responded with 410 Gone. */
  readonly isGone: boolean;
  /** Why the subscription is paused; undefined if it is not. */
  readonly pauseReason: string | undefined;
}

export interface Settlement extends SendResult {
  readonly now: number;
  readonly limits: AddressLimits;
  /** Returns why the sink must be disabled after these failures, or undefined. */
  disableReason(failures: SinkFailures): string | undefined;
  /** Called in the same transaction when the sink is disabled. */
  onDisable(tx: Transaction, failures: SinkFailures, reason: string): Promise<void>;
  /** Called in the same transaction when the subscription was not paused before. */
  onPause(tx: Transaction, reason: string): Promise<void>;
}

/** The error of a delivery that is not sent because of the access of the maker of the subscription. */
const WITHHELD = 'not sent: the maker of the subscription may not read this event';
/** The reason of a sink that has not permitted deliveries. */
const NOT_PERMITTED = 'it has not permitted deliveries by the handshake';

const IS_ANY_DUE = 'SELECT subscription FROM sink WHERE due <= $1 LIMIT 1';
const NEXT_DUE = 'SELECT min(due) AS due FROM sink WHERE due IS NOT NULL';
const dueSinks = (condition: string) =>
  `SELECT subscription, failures, maker, address, accepted, handshake, allowed_rate AS "allowedRate" FROM sink
    WHERE due <= $1 AND ${condition} ORDER BY due LIMIT $2`;
const DUE_WORKING = dueSinks('failures = 0');
const DUE_FAILING = dueSinks('failures > 0');
const LEASE = 'UPDATE sink SET lease = $2, due = $3 WHERE subscription = $1';
const POSTPONE = 'UPDATE sink SET due = $2 WHERE subscription = $1';
const SET_ADDRESS = 'UPDATE sink SET address = $2 WHERE subscription = $1';
const COUNT_DUE = `SELECT count(*) AS n FROM (
  SELECT 1 AS one FROM delivery WHERE state = 'pending' AND subscription = $1 AND due <= $2 LIMIT $3
) AS pending`;
const POSTPONED = `SELECT subscription FROM sink
  WHERE address = $1 AND due > $2 AND rest <= $2 AND lease IS NULL ORDER BY subscription`;
const FIND_LEASE = 'SELECT lease FROM sink WHERE subscription = $1 AND lease = $2';
const FIND_FAILURES = 'SELECT failures, failing_since, paused FROM sink WHERE subscription = $1 AND lease = $2';
// Events about one subject are delivered in order: a delivery waits for an earlier one that will be retried.
const DUE_DELIVERIES = `SELECT d.id, d.attempts, ${EVENT_COLUMNS} FROM delivery d JOIN outbox o ON o.id = d.event
  WHERE d.state = 'pending' AND d.subscription = $1 AND d.due <= $2 AND NOT EXISTS (
    SELECT 1 FROM delivery e
    WHERE e.subscription = d.subscription AND e.subject = d.subject AND e.id < d.id AND e.due > $2
  ) ORDER BY d.id LIMIT $3`;
const LATER_DUE = "SELECT min(due) AS due FROM delivery WHERE state = 'pending' AND subscription = $1 AND due > $2";
const RECORD = `UPDATE delivery SET state = $2, attempts = $3, due = $4, attempted = $5, duration = $6, status = $7,
  error = $8 WHERE id = $1`;
const WITHHOLD = "UPDATE delivery SET state = 'failed', due = NULL, error = $2 WHERE id = $1";
const SETTLE = `UPDATE sink SET lease = NULL, due = $2, rest = $3, failures = $4, failing_since = $5, disabled = $6,
  reason = $7, paused = $8, accepted = coalesce(accepted, $9) WHERE subscription = $1`;
const PERMIT = 'UPDATE sink SET handshake = $2, allowed_rate = $3 WHERE subscription = $1 AND handshake IS NOT NULL';

/** A number of sinks: those whose last attempt succeeded, and those whose last attempt failed. */
export interface SinkCounts {
  readonly working: number;
  readonly failing: number;
}

interface DueSink {
  readonly subscription: string;
  readonly failures: number;
  readonly maker: string | null;
  readonly address: string | null;
  readonly accepted: number | null;
  readonly handshake: number | null;
  readonly allowedRate: number | null;
}

export interface LeaseOptions {
  /** The most sinks to lease. */
  readonly capacity: SinkCounts;
  readonly now: number;
  readonly leaseMs: number;
  readonly limits: AddressLimits;
}

/**
 * Leases sinks that have due deliveries, up to the limits. Those that have waited longest come first. A sink whose address
 * gets enough requests already waits.
 */
export async function leaseDueSinks(
  store: Store,
  { capacity: { working, failing }, now, leaseMs, limits }: LeaseOptions,
): Promise<SinkLease[]> {
  if (working + failing <= 0 || !(await store.reader.get(IS_ANY_DUE, now))) return [];
  return store.write(async (tx) => {
    const id = randomUUID();
    const lock = async (text: string, limit: number) => tx.forUpdateSkipLocked.all<Row & DueSink>(text, now, limit);
    const found = [...(await lock(DUE_WORKING, working)), ...(await lock(DUE_FAILING, failing))];
    const sinks: (DueSink & { readonly at: SinkAddress })[] = [];
    for (const sink of found) sinks.push({ ...sink, at: await addressOf(tx, sink) });
    sinks.sort((a, b) => compareAddresses(a.at, b.at));
    const reservations = createReservations(tx, limits, now);
    const leases: SinkLease[] = [];
    for (const { subscription, failures, maker, accepted, handshake, allowedRate, at } of sinks) {
      // One for a sink without due deliveries, whose next time must be determined.
      const wanted = Math.max(1, (await tx.get<{ n: number }>(COUNT_DUE, subscription, now, MAX_DELIVERIES))?.n ?? 0);
      const reservation = await reservations.reserve(at, { hasAccepted: accepted !== null, wanted, leaseMs });
      if ('until' in reservation) {
        await tx.run(POSTPONE, subscription, reservation.until);
        continue;
      }
      await tx.run(LEASE, subscription, id, now + leaseMs);
      leases.push({ id, subscription, failures, maker, accepted, handshake, allowedRate, at, reservation });
    }
    return leases;
  });
}

/** Earlier versions did not store the address. */
async function addressOf(tx: Transaction, { subscription, address }: DueSink): Promise<SinkAddress> {
  const organization = rootOf(subscription);
  if (address !== null) return { organization, address };
  const sink = (await find(tx, subscriptions, subscription))?.message.sink ?? '';
  await tx.run(SET_ADDRESS, subscription, sinkAddress(sink));
  return { organization, address: sinkAddress(sink) };
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
export async function settle(store: Store, lease: SinkLease, settlement: Settlement): Promise<void> {
  const { subscription, id, at, reservation } = lease;
  const { outcomes, withheld, handshake, waitUntil, pauseReason, limits, now } = settlement;
  const accepted = outcomes.find(({ state }) => state === 'delivered');
  const isRefused = handshake?.isPermitted === false;
  const use = {
    sent: outcomes.length + (handshake ? 1 : 0),
    hasAccepted: accepted !== undefined,
    hasFailed: isRefused || outcomes.some(({ state }) => state !== 'delivered'),
  };
  const isAddressAccepted = await store.write(async (tx) => {
    const before = await tx.forUpdate.get<SinkFailures & { paused: number | null }>(FIND_FAILURES, subscription, id);
    if (!before) return false;
    for (const outcome of outcomes) await record(tx, outcome);
    for (const delivery of withheld) await tx.run(WITHHOLD, delivery, WITHHELD);
    if (handshake?.isPermitted) await tx.run(PERMIT, subscription, now, handshake.allowedRate ?? null);
    const after = outcomes.reduce(failuresAfter, isRefused ? failuresAfter(before, handshake) : before);
    const { failures, failing_since } = after;
    const disableReason = settlement.disableReason(after);
    const disabled = disableReason === undefined ? null : now;
    const due = disabled === null ? await dueAfter(tx, subscription, waitUntil, now) : undefined;
    const reason = disableReason ?? (isRefused ? NOT_PERMITTED : null);
    const paused = pauseReason === undefined ? null : (before.paused ?? now);
    const state = [failures, failing_since, disabled, reason, paused, accepted?.attempted ?? null] as const;
    await tx.run(SETTLE, subscription, due ?? null, waitUntil, ...state);
    if (disableReason !== undefined) await settlement.onDisable(tx, after, disableReason);
    if (pauseReason !== undefined && before.paused === null) await settlement.onPause(tx, pauseReason);
    return settleReservation(tx, at, reservation, use, limits, now);
  });
  if (isAddressAccepted) await wakePostponed(store, at, now);
}

/** Makes the sinks due that wait until their address has accepted a delivery. */
const wakePostponed = (store: Store, { organization, address }: SinkAddress, now: number): Promise<void> =>
  store.write(async (tx) => {
    const sinks = await tx.forUpdateSkipLocked.all<{ subscription: string }>(POSTPONED, address, now);
    for (const { subscription } of sinks) {
      if (rootOf(subscription) === organization) await tx.run(POSTPONE, subscription, now);
    }
  });

const record = (tx: Transaction, { id, state, attempts, due, attempted, durationMs, status, error }: AttemptOutcome) =>
  tx.run(RECORD, id, state, attempts, due ?? null, attempted, durationMs, status ?? null, error ?? null);

const failuresAfter = (
  before: SinkFailures,
  { state, attempted }: { readonly state?: DeliveryStateName; readonly attempted: number },
): SinkFailures =>
  state === 'delivered'
    ? { failures: 0, failing_since: null }
    : { failures: before.failures + 1, failing_since: before.failing_since ?? attempted };

/** Must be called while the sink is locked, so that no delivery is added that this does not see. */
async function dueAfter(tx: Transaction, uid: string, waitUntil: number, now: number): Promise<number | undefined> {
  const [isDue] = await dueDeliveries(tx, uid, now, 1);
  const due = isDue ? now : (await tx.get<{ due: number | null }>(LATER_DUE, uid, now))?.due;
  return due == null ? undefined : Math.max(due, waitUntil);
}
