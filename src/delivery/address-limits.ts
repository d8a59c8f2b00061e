import type { Row, Transaction } from '../store/store.ts';
import { newSinkDelay } from './retry-schedule.ts';

/** How many requests the sinks of one organization at one address may get together, on all servers of the database. */
export interface AddressLimits {
  /** Requests per second, for an address that has accepted a delivery. */
  readonly rate: number;
  /** The delay after the first failure of an address that has accepted nothing yet; 0 for no limit before. */
  readonly newSinkIntervalMs: number;
}

/** An organization, and the host of a sink in it. */
export interface SinkAddress {
  readonly organization: string;
  readonly address: string;
}

/** Requests that a lease may send. */
export interface Reservation {
  readonly requests: number;
  /** Whether the address has accepted nothing yet. Then no other request is sent to it at the same time. */
  readonly isNewAddress: boolean;
}

interface AddressRow extends Row {
  /** In microseconds. */
  readonly next: number;
  readonly failures: number;
  readonly accepted: number | null;
}

/** The requests of this time may be sent at once. */
const BURST_MS = 10_000;
/** Sinks that wait for their address are not examined more often. Meanwhile several requests become available. */
const MIN_WAIT_MS = 100;
/** All new addresses of one organization together, so that host names without end are no way around the limit. */
const NEW_ADDRESSES_PER_SECOND = 1;
const ALL_NEW_ADDRESSES = '';

const FIND = 'SELECT next, failures, accepted FROM sink_address WHERE organization = $1 AND address = $2';
const INSERT = `INSERT INTO sink_address (organization, address, next, failures) VALUES ($1, $2, 0, 0)
  ON CONFLICT DO NOTHING`;
const SET_NEXT = 'UPDATE sink_address SET next = $3 WHERE organization = $1 AND address = $2';
const REFUND = 'UPDATE sink_address SET next = next - $3 WHERE organization = $1 AND address = $2';
const ACCEPT = `UPDATE sink_address SET next = $3, failures = 0, accepted = $4
  WHERE organization = $1 AND address = $2 AND accepted IS NULL`;
const FAIL = 'UPDATE sink_address SET next = $3, failures = $4 WHERE organization = $1 AND address = $2';

const micros = (ms: number): number => ms * 1000;
/** The time that one request uses up at a rate, in microseconds. */
const intervalOf = (rate: number): number => Math.ceil(1_000_000 / rate);

/** Rounded up, so that a request is available then. */
const toMs = (us: number): number => Math.ceil(us / 1000);

/**
 * Creates the reservations of one transaction. They must be made in the order of `compareAddresses`, because all
 * transactions must lock addresses in the same order.
 */
export function createReservations(tx: Transaction, { rate, newSinkIntervalMs }: AddressLimits, now: number) {
  const interval = intervalOf(rate);
  /** How many sinks have been told to wait for an address, so that each waits for another request. */
  const waiting = new Map<string, number>();

  async function lock({ organization, address }: SinkAddress): Promise<AddressRow> {
    const found = await tx.forUpdate.get<AddressRow>(FIND, organization, address);
    if (found) return found;
    await tx.run(INSERT, organization, address);
    return (await tx.forUpdate.get<AddressRow>(FIND, organization, address)) as AddressRow;
  }

  /** Takes up to `wanted` requests, or returns when there is one. */
  async function take(at: SinkAddress, row: AddressRow, wanted: number, every: number) {
    const next = Math.max(row.next, micros(now));
    const available = Math.floor((micros(now + BURST_MS) - next) / every);
    const requests = Math.min(wanted, available);
    if (requests > 0) {
      await tx.run(SET_NEXT, at.organization, at.address, next + requests * every);
      return { requests, until: 0 };
    }
    const key = `${at.organization} ${at.address}`;
    const position = waiting.get(key) ?? 0;
    waiting.set(key, position + 1);
    const free = toMs(next - micros(BURST_MS) + (position + 1) * every);
    return { requests: 0, until: Math.max(free, now + MIN_WAIT_MS) };
  }

  return {
    /** Reserves up to `wanted` requests for a lease, or returns the time before which the sink must wait. */
    async reserve(
      at: SinkAddress,
      { hasAccepted, wanted, leaseMs }: { hasAccepted: boolean; wanted: number; leaseMs: number },
    ): Promise<Reservation | { readonly until: number }> {
      const isNewSink = !hasAccepted && newSinkIntervalMs > 0;
      const all = { organization: at.organization, address: ALL_NEW_ADDRESSES };
      const allNew = isNewSink ? await lock(all) : undefined;
      const row = await lock(at);
      if (allNew === undefined || row.accepted !== null) {
        const { requests, until } = await take(at, row, isNewSink ? 1 : wanted, interval);
        return requests > 0 ? { requests, isNewAddress: false } : { until };
      }
      if (row.next > micros(now)) return { until: toMs(row.next) };
      const { requests, until } = await take(all, allNew, 1, intervalOf(NEW_ADDRESSES_PER_SECOND));
      if (requests === 0) return { until };
      await tx.run(SET_NEXT, at.organization, at.address, micros(now + leaseMs));
      return { requests, isNewAddress: true };
    },
  };
}

export const compareAddresses = (a: SinkAddress, b: SinkAddress): number =>
  compare(a.organization, b.organization) || compare(a.address, b.address);

const compare = (a: string, b: string): number => (a < b ? -1 : Number(a > b));

export interface AddressUse {
  readonly sent: number;
  readonly hasAccepted: boolean;
  readonly hasFailed: boolean;
}

/** Records what a lease has used of its reservation. Returns whether the address accepted a delivery for the first time. */
export async function settleReservation(
  tx: Transaction,
  at: SinkAddress,
  { requests, isNewAddress }: Reservation,
  { sent, hasAccepted, hasFailed }: AddressUse,
  { rate, newSinkIntervalMs }: AddressLimits,
  now: number,
): Promise<boolean> {
  const { organization, address } = at;
  const interval = intervalOf(rate);
  if (!isNewAddress) {
    if (requests > sent) await tx.run(REFUND, organization, address, (requests - sent) * interval);
    return false;
  }
  if (hasAccepted) return (await tx.run(ACCEPT, organization, address, micros(now) + interval, now)) > 0;
  const row = await tx.forUpdate.get<AddressRow>(FIND, organization, address);
  const failures = (row?.failures ?? 0) + (hasFailed ? 1 : 0);
  const delayMs = hasFailed ? newSinkDelay(newSinkIntervalMs, failures) : 0;
  await tx.run(FAIL, organization, address, micros(now + delayMs), failures);
  return false;
}
