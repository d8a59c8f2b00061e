import { randomUUID } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import type { Clock } from '../base/clock.ts';
import type { Log } from '../base/log.ts';
import type { Metrics } from '../base/metrics.ts';
import { parentOf } from '../base/uid.ts';
import { SinkSchema } from '../contract/gen/wharfinger/events/v1/sinks_pb.js';
import { encodeJson } from '../contract/json/encode.ts';
import { sinkMessage } from '../domains/events/sinks.ts';
import type { Tokens } from '../identity/tokens/access-tokens.ts';
import { appendEvent } from '../store/outbox.ts';
import type { Store, Transaction } from '../store/store.ts';
import { fanOut } from './fan-out.ts';
import { prune } from './prune.ts';
import { type Claim, claim, type DueDelivery, type Health, nextDue, type Outcome, type Room, settle } from './queue.ts';
import type { Patience } from './retry-schedule.ts';
import { type RoundOptions, sendRound } from './send-due.ts';

export interface DeliveryOptions extends Patience {
  readonly store: Store;
  readonly clock: Clock;
  readonly log: Log;
  readonly metrics: Pick<Metrics, 'delivery'>;
  readonly tokens: Pick<Tokens, 'attest'>;
  readonly unseal: (sealed: string, context: string) => string;
  readonly publicUrl: () => string;
  readonly allowInsecure: boolean;
  /** For one attempt. */
  readonly timeoutMs: number;
  /** How long deliveries and their events are kept. */
  readonly retentionMs: number;
}

/** Brings events from the outbox to the sinks of subscriptions, for as long as the server runs. */
export interface Delivery {
  /** Looks for work at once: something was written. */
  wake(): void;
  /** Lets running attempts end, for a moment, and gives back what is not done. */
  stop(): Promise<void>;
}

/**
 * Sinks that are sent to at the same time. Each gets one request at a time, so a dead one holds up no other; and however
 * many are dead, there is room for those that work.
 */
const MAX_ROUNDS: Room = { working: 128, failing: 32 };
const GATHER_MS = 5;
/** How long work that nobody told us of, such as that of a server which died, may wait. */
const POLL_MS = 500;
/** Not sooner: what is due and yet not to be had is in the hands of another server. */
const LEAST_MS = 10;
/** A database that does not answer now is not asked again at once. */
const TROUBLE_MS = 5_000;
const PRUNE_MS = 10 * 60 * 1000;
const STOP_GRACE_MS = 3000;
/** A round ends when one time-out has passed, and its last attempt takes another; the third is for a slow database. */
const LEASE_TIMEOUTS = 3;

/** The event that says that a sink was disabled. */
export const SINK_DISABLED = 'dev.wharfinger.events.subscription.disabled.v1';

export function createDelivery(options: DeliveryOptions): Delivery {
  const { store, clock, log, metrics, schedule, giveUpMs, timeoutMs, retentionMs } = options;
  const stopping = new AbortController();
  const cutOff = new AbortController();
  const rounds = new Set<Promise<void>>();
  const running = { working: 0, failing: 0 };
  const roundOptions: RoundOptions = {
    ...options,
    db: store.reader,
    stopping: stopping.signal,
    cutOff: cutOff.signal,
    observe,
  };
  let timer: NodeJS.Timeout | undefined;
  let looking: Promise<void> | undefined;
  let lookAgain = false;
  let pruning: Promise<void> | undefined;
  let pruneAt = clock() + PRUNE_MS;

  function wake(): void {
    if (stopping.signal.aborted) return;
    lookAgain = true;
    looking ??= look();
  }

  async function look(): Promise<void> {
    clearTimeout(timer);
    // Writes come in bursts, and what came together costs little more than one.
    await delay(GATHER_MS);
    let waitMs = POLL_MS;
    try {
      while (lookAgain && !stopping.signal.aborted) {
        lookAgain = false;
        if ((await fanOut(store, { now: clock(), delayMs: schedule[0] ?? 0, retentionMs })) > 0) lookAgain = true;
        const claims = await claim(store, room(), clock(), timeoutMs * LEASE_TIMEOUTS);
        for (const each of claims) begin(each);
        // Under a stream of writes, a look at each commit would cost as much as the commits.
        if (lookAgain) await delay(GATHER_MS);
      }
      const due = await nextDue(store.reader);
      const { working, failing } = room();
      // At its end every round wakes us, so a full house needs no timer.
      if (due !== undefined && working > 0 && failing > 0) {
        waitMs = Math.min(POLL_MS, Math.max(LEAST_MS, due - clock()));
      }
      // Something was written while we looked at the rest.
      if (lookAgain) waitMs = LEAST_MS;
      pruneNowAndThen();
    } catch (error) {
      log.warn({ error }, 'cannot look for events to deliver');
      waitMs = TROUBLE_MS;
    }
    looking = undefined;
    if (!stopping.signal.aborted) timer = setTimeout(wake, waitMs);
  }

  /** Beside the deliveries, which need not wait for it. */
  function pruneNowAndThen(): void {
    if (clock() < pruneAt) return;
    pruneAt = clock() + PRUNE_MS;
    pruning ??= prune(store, clock(), retentionMs, stopping.signal)
      .catch((error: unknown) => log.warn({ error }, 'cannot prune old events'))
      .finally(() => {
        pruning = undefined;
      });
  }

  const room = (): Room => ({
    working: MAX_ROUNDS.working - running.working,
    failing: MAX_ROUNDS.failing - running.failing,
  });

  function begin(claimed: Claim): void {
    const kind = claimed.failures > 0 ? 'failing' : 'working';
    running[kind]++;
    const round = perform(claimed)
      .catch((error: unknown) => {
        // Its lease runs out, and then it is tried again.
        log.warn({ error, subscription: claimed.subscription }, 'cannot deliver events');
      })
      .finally(() => {
        rounds.delete(round);
        running[kind]--;
        wake();
      });
    rounds.add(round);
  }

  async function perform(claimed: Claim): Promise<void> {
    const { outcomes, rest, gone } = await sendRound(roundOptions, claimed);
    const now = clock();
    const verdict = ({ failing_since: since }: Health): string | undefined => {
      if (gone) return 'it answered 410 Gone';
      const hasFailed = outcomes.length > 0 && since !== null;
      return hasFailed && now - since >= giveUpMs ? 'every attempt has failed for too long' : undefined;
    };
    const disabled = (tx: Transaction, health: Health, reason: string) =>
      announce(tx, claimed.subscription, health, reason, now);
    await settle(store, claimed, { outcomes, rest, now, verdict, disabled });
  }

  /** Others who hear the group learn of it, in the way they learn of everything else. */
  async function announce(tx: Transaction, subscription: string, health: Health, reason: string, now: number) {
    log.warn({ subscription, reason }, 'disabled a subscription');
    const { failing_since } = health;
    const group = parentOf(subscription);
    const sink = sinkMessage(subscription, { failing_since, disabled: now, reason });
    await appendEvent(tx, {
      id: randomUUID(),
      type: SINK_DISABLED,
      subject: subscription,
      scope: group,
      time: now,
      audience: 'customer',
      extensions: { group },
      body: { type: SinkSchema.typeName, json: encodeJson(SinkSchema, sink) },
    });
  }

  function observe({ state, attempted, durationMs, status, error }: Outcome, event: DueDelivery): void {
    metrics.delivery.observe(state, durationMs / 1000);
    if (state === 'delivered') metrics.delivery.observeLag((attempted + durationMs - event.time) / 1000);
    log.debug({ event: event.event_id, type: event.type, state, status, error, ms: durationMs }, 'delivery attempt');
  }

  metrics.delivery.countWaiting(async () => (await store.reader.get<{ n: number }>(WAITING))?.n ?? 0);
  wake();

  return {
    wake,
    async stop() {
      stopping.abort();
      clearTimeout(timer);
      await looking;
      const done = Promise.all(rounds);
      await Promise.race([done, delay(STOP_GRACE_MS, undefined, { ref: false })]);
      cutOff.abort();
      await Promise.all([done, pruning]);
    },
  };
}

const WAITING = "SELECT count(*) AS n FROM delivery WHERE state = 'pending'";
