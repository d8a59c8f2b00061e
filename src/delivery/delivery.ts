import { randomUUID } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import type { Clock } from '../base/clock.ts';
import type { Log } from '../base/log.ts';
import type { Metrics } from '../base/metrics.ts';
import { DELIVERY_STOP_MS } from '../base/stop-grace.ts';
import type { Tracing } from '../base/tracing.ts';
import { parentOf } from '../base/uid.ts';
import type { EventReaders } from '../contract/event-readers.ts';
import { Capability } from '../contract/gen/capabilities/capabilities_pb.js';
import { SinkSchema } from '../contract/gen/wharfinger/events/v1/sinks_pb.js';
import { encodeJson } from '../contract/json/encode.ts';
import type { MakerAccess } from '../domains/events/maker.ts';
import { ENABLED, type SinkRow } from '../domains/events/sink-rows.ts';
import { toSinkMessage } from '../domains/events/sinks.ts';
import type { AccessTokens } from '../identity/tokens/access-tokens.ts';
import type { CommitSignal } from '../store/commit-signal.ts';
import { appendEvent } from '../store/outbox.ts';
import type { Store, Transaction } from '../store/store.ts';
import type { AddressLimits } from './address-limits.ts';
import { fanOut } from './fan-out.ts';
import { prune } from './prune.ts';
import {
  type AttemptOutcome,
  type DueDelivery,
  leaseDueSinks,
  nextDue,
  type SinkCounts,
  type SinkFailures,
  type SinkLease,
  settle,
} from './queue.ts';
import type { RetryPolicy } from './retry-schedule.ts';
import { type SendOptions, sendDue } from './send-due.ts';
import { createSubscriptionAccess } from './subscription-access.ts';

export interface DeliveryOptions extends RetryPolicy {
  /** Determines what the makers of subscriptions may do now. */
  readonly makerAccess: MakerAccess;
  /** The capabilities to read what events contain. */
  readonly eventReaders: EventReaders;
  readonly limits: AddressLimits;
  readonly store: Store;
  /** Commits that may have written events. Those of delivery itself must not be among them. */
  readonly commits?: Pick<CommitSignal, 'subscribe'>;
  readonly clock: Clock;
  readonly log: Log;
  readonly metrics: Pick<Metrics, 'delivery'>;
  readonly tracing?: Tracing | undefined;
  readonly accessTokens: Pick<AccessTokens, 'signAssertion'>;
  readonly unseal: (sealed: string, context: string) => Promise<string>;
  readonly publicUrl: string;
  readonly allowInsecure: boolean;
  /** The time limit of one attempt. */
  readonly timeoutMs: number;
  /** How long deliveries and their events are kept. */
  readonly retentionMs: number;
}

/** Delivers events from the outbox to the sinks of subscriptions, until it is stopped. */
export interface Delivery {
  /** Polls now. To be called after a commit, which may have written events. */
  wake(): void;
  /** Waits a short time for running requests, cancels the others, and ends all leases. */
  stop(): Promise<void>;
}

/**
 * The most sinks that are sent to concurrently. Each gets one request at a time, so a slow sink delays no other one.
 * Failing sinks have a limit of their own, so that any number of them leaves capacity for those that work.
 */
const MAX_SINKS: SinkCounts = { working: 128, failing: 32 };
/** Writes come in bursts. One poll after a short delay handles many of them at little more cost than one. */
const BATCH_DELAY_MS = 5;
/** How often to poll without `wake`, for work of other servers, such as one that was killed. */
const POLL_MS = 500;
/** Due sinks that could not be leased are leased by another server, so polling again sooner is no use. */
const MIN_WAIT_MS = 10;
/** The delay of the next poll after the database has failed. */
const ERROR_WAIT_MS = 5_000;
const PRUNE_MS = 10 * 60 * 1000;
/**
 * The duration of a lease, in timeouts of one attempt. Sending starts no attempt after one timeout, and the last
 * attempt can take another one. The third is for a slow database.
 */
const LEASE_TIMEOUTS = 3;

/** The types of the events of a sink that is disabled or paused. */
export const SINK_DISABLED = 'dev.wharfinger.events.subscription.disabled.v1';
export const SINK_PAUSED = 'dev.wharfinger.events.subscription.paused.v1';
const READ_SINK = [Capability.CAP_EVENTS_SUBSCRIPTION_LIST];

/**
 * Runs these steps in a loop:
 * 1. fan-out.ts creates the deliveries of new events in the outbox.
 * 2. queue.ts leases sinks with due deliveries, so that no other server sends to them.
 * 3. send-due.ts sends the deliveries of each leased sink.
 * 4. queue.ts records the outcomes and ends the lease.
 */
export function createDelivery(options: DeliveryOptions): Delivery {
  const { store, clock, log, metrics, schedule, giveUpMs, timeoutMs, retentionMs, limits } = options;
  const accessOf = createSubscriptionAccess(
    options.makerAccess,
    new Map([...options.eventReaders, [SINK_DISABLED, READ_SINK], [SINK_PAUSED, READ_SINK]]),
  );
  const stopping = new AbortController();
  const cancelling = new AbortController();
  const sending = new Set<Promise<void>>();
  const running = { working: 0, failing: 0 };
  const sendOptions: SendOptions = {
    ...options,
    db: store.reader,
    stopping: stopping.signal,
    cancelling: cancelling.signal,
    observe,
    accessOf,
  };
  let timer: NodeJS.Timeout | undefined;
  let polling: Promise<void> | undefined;
  let pollAgain = false;
  let pruning: Promise<void> | undefined;
  let pruneAt = clock() + PRUNE_MS;

  function wake(): void {
    if (stopping.signal.aborted) return;
    pollAgain = true;
    polling ??= poll();
  }

  async function poll(): Promise<void> {
    clearTimeout(timer);
    await delay(BATCH_DELAY_MS);
    let waitMs = POLL_MS;
    try {
      while (pollAgain && !stopping.signal.aborted) {
        pollAgain = false;
        if ((await createDeliveries()) > 0) pollAgain = true;
        const leaseMs = timeoutMs * LEASE_TIMEOUTS;
        const leases = await leaseDueSinks(store, { capacity: freeCapacity(), now: clock(), leaseMs, limits });
        for (const lease of leases) startSending(lease);
        // During continuous writes, a poll per commit would cost as much as the commits.
        if (pollAgain) await delay(BATCH_DELAY_MS);
      }
      const due = await nextDue(store.reader);
      const { working, failing } = freeCapacity();
      // Without free capacity no timer is needed, because the end of each `send` polls.
      if (due !== undefined && working > 0 && failing > 0) {
        waitMs = Math.min(POLL_MS, Math.max(MIN_WAIT_MS, due - clock()));
      }
      // `wake` was called after the loop.
      if (pollAgain) waitMs = MIN_WAIT_MS;
      startPruningIfDue();
    } catch (error) {
      log.warn({ error }, 'cannot look for events to deliver');
      waitMs = ERROR_WAIT_MS;
    }
    polling = undefined;
    if (!stopping.signal.aborted) timer = setTimeout(wake, waitMs);
  }

  function createDeliveries(): Promise<number> {
    const now = clock();
    const onPause = (tx: Transaction, subscription: string, reason: string) =>
      appendSinkEvent(tx, SINK_PAUSED, subscription, { ...ENABLED, paused: now, reason }, now);
    return fanOut(store, { now, delayMs: schedule[0] ?? 0, retentionMs, accessOf, onPause });
  }

  /** Not awaited, because deliveries need not wait for it. */
  function startPruningIfDue(): void {
    if (clock() < pruneAt) return;
    pruneAt = clock() + PRUNE_MS;
    pruning ??= prune(store, clock(), retentionMs, stopping.signal)
      .catch((error: unknown) => log.warn({ error }, 'cannot prune old events'))
      .finally(() => {
        pruning = undefined;
      });
  }

  const freeCapacity = (): SinkCounts => ({
    working: MAX_SINKS.working - running.working,
    failing: MAX_SINKS.failing - running.failing,
  });

  function startSending(lease: SinkLease): void {
    const kind = lease.failures > 0 ? 'failing' : 'working';
    running[kind]++;
    const sent = send(lease)
      .catch((error: unknown) => {
        // The lease expires, and then the deliveries are sent again.
        log.warn({ error, subscription: lease.subscription }, 'cannot deliver events');
      })
      .finally(() => {
        sending.delete(sent);
        running[kind]--;
        wake();
      });
    sending.add(sent);
  }

  async function send(lease: SinkLease): Promise<void> {
    const { subscription } = lease;
    const result = await sendDue(sendOptions, lease);
    const { outcomes, handshake, isGone } = result;
    const now = clock();
    const disableReason = ({ failing_since: since }: SinkFailures): string | undefined => {
      if (isGone) return 'it answered 410 Gone';
      const hasFailed = (outcomes.length > 0 || handshake !== undefined) && since !== null;
      return hasFailed && now - since >= giveUpMs ? 'every attempt has failed for too long' : undefined;
    };
    const onDisable = (tx: Transaction, { failing_since }: SinkFailures, reason: string) =>
      appendSinkEvent(tx, SINK_DISABLED, subscription, { ...ENABLED, failing_since, disabled: now, reason }, now);
    const onPause = (tx: Transaction, reason: string) =>
      appendSinkEvent(tx, SINK_PAUSED, subscription, { ...ENABLED, paused: now, reason }, now);
    await settle(store, lease, { ...result, now, limits, disableReason, onDisable, onPause });
  }

  async function appendSinkEvent(
    tx: Transaction,
    type: typeof SINK_DISABLED | typeof SINK_PAUSED,
    subscription: string,
    row: SinkRow,
    now: number,
  ): Promise<void> {
    const { reason } = row;
    log.warn({ subscription, reason }, `${type === SINK_PAUSED ? 'paused' : 'disabled'} a subscription`);
    const group = parentOf(subscription);
    await appendEvent(tx, {
      id: randomUUID(),
      type,
      subject: subscription,
      scope: group,
      time: now,
      audience: 'customer',
      extensions: { group },
      body: { type: SinkSchema.typeName, json: encodeJson(SinkSchema, toSinkMessage(subscription, row), 'event') },
    });
  }

  function observe({ state, attempted, durationMs, status, error }: AttemptOutcome, event: DueDelivery): void {
    metrics.delivery.observe(state, durationMs / 1000);
    if (state === 'delivered') metrics.delivery.observeLag((attempted + durationMs - event.time) / 1000);
    log.debug({ event: event.event_id, type: event.type, state, status, error, ms: durationMs }, 'delivery attempt');
  }

  metrics.delivery.readWaitingFrom(async () => (await store.reader.get<{ n: number }>(COUNT_PENDING))?.n ?? 0);
  options.commits?.subscribe(wake);
  wake();

  return {
    wake,
    async stop() {
      stopping.abort();
      clearTimeout(timer);
      await polling;
      const sent = Promise.all(sending);
      await Promise.race([sent, delay(DELIVERY_STOP_MS, undefined, { ref: false })]);
      cancelling.abort();
      await Promise.all([sent, pruning]);
    },
  };
}

// Limited, because SQLite would hold the event loop for as long as it counts a long queue.
const COUNT_PENDING = `SELECT count(*) AS n FROM (
  SELECT 1 AS one FROM delivery WHERE state = 'pending' LIMIT 100000
) AS pending`;
