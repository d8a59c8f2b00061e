import { createHash } from 'node:crypto';
import type { Clock } from '../base/clock.ts';
import { newTraceHeaders } from '../base/trace-context.ts';
import type { Tracing } from '../base/tracing.ts';
import { type ParentUid, parentOf } from '../base/uid.ts';
import { subscriptions } from '../domains/events/subscriptions.ts';
import { secretContext, type WebhookSecrets } from '../domains/events/webhook-secret.ts';
import type { AccessTokens } from '../identity/tokens/access-tokens.ts';
import { find } from '../resource/read.ts';
import type { Reader } from '../store/store.ts';
import type { AddressLimits } from './address-limits.ts';
import { cloudEventHeaders, eventData } from './cloud-event.ts';
import { originOf, requestPermission } from './handshake.ts';
import {
  type AttemptOutcome,
  type DueDelivery,
  dueDeliveries,
  type HandshakeOutcome,
  isLeaseValid,
  type SendResult,
  type SinkLease,
} from './queue.ts';
import { backoffUntil, newSinkDelay, nextAttempt, type RetryPolicy, readRetryAfter } from './retry-schedule.ts';
import { openSinkConnection, type PostOptions, type SinkConnection } from './sink-connection.ts';
import type { FindSubscriptionAccess } from './subscription-access.ts';
import { traceAttempt } from './trace-attempt.ts';
import { signatureHeaders } from './webhook-signature.ts';

/** How often it is checked whether the maker of a paused subscription has access again. */
const PAUSED_CHECK_MS = 5 * 60 * 1000;
/**
 * After a failure that took this long the lease ends. The sink then counts among the failing ones (MAX_SINKS in delivery.ts).
 */
const SLOW_MS = 1_000;
/** The lifetime of the signed assertion in the Authorization header, within which receivers must verify it. */
const TOKEN_MS = 15 * 60 * 1000;

export interface SendOptions extends PostOptions, RetryPolicy {
  readonly db: Reader;
  readonly clock: Clock;
  readonly accessTokens: Pick<AccessTokens, 'signAssertion'>;
  readonly unseal: (sealed: string, context: string) => Promise<string>;
  readonly publicUrl: string;
  /** Aborted when the server stops: no further delivery is sent. */
  readonly stopping: AbortSignal;
  /** Aborted some time later: a running request is cancelled. */
  readonly cancelling: AbortSignal;
  readonly observe: (outcome: AttemptOutcome, event: DueDelivery) => void;
  readonly accessOf: FindSubscriptionAccess;
  readonly limits: AddressLimits;
  /** Absent without tracing. */
  readonly tracing?: Tracing | undefined;
}

const NOTHING: SendResult = {
  outcomes: [],
  withheld: [],
  handshake: undefined,
  waitUntil: 0,
  isGone: false,
  pauseReason: undefined,
};

/** Sends the due deliveries of the leased sink, one after the other in the order of the events. */
export async function sendDue(options: SendOptions, lease: SinkLease): Promise<SendResult> {
  const { db, clock, accessOf } = options;
  const { subscription, maker, handshake } = lease;
  const stored = await find(db, subscriptions, subscription);
  if (!stored) return NOTHING;
  const { pauseReason } = await accessOf(maker, stored.parent);
  if (pauseReason !== undefined) return { ...NOTHING, pauseReason, waitUntil: clock() + PAUSED_CHECK_MS };
  const { sink } = stored.message;
  const connection = openSinkConnection(sink, options);
  try {
    if (handshake === 0) return await shakeHands(options, lease, connection);
    const secrets = await openSecrets(options, subscription, stored.state as unknown as WebhookSecrets);
    const origin = handshake === null ? undefined : originOf(options.publicUrl);
    return await sendAll(options, lease, { sink, secrets, connection, subscription, group: stored.parent, origin });
  } finally {
    connection.close();
  }
}

/** Asks the sink for its permission. Its deliveries are sent under the next lease. */
async function shakeHands(
  { clock, publicUrl, cancelling, limits }: SendOptions,
  { failures }: SinkLease,
  connection: SinkConnection,
): Promise<SendResult> {
  const attempted = clock();
  let handshake: HandshakeOutcome;
  try {
    handshake = { ...(await requestPermission(connection, originOf(publicUrl), cancelling)), attempted };
  } catch {
    if (cancelling.aborted) return NOTHING;
    handshake = { isPermitted: false, allowedRate: undefined, attempted };
  }
  const waitMs = handshake.isPermitted ? 0 : newSinkDelay(limits.newSinkIntervalMs, failures + 1);
  return { ...NOTHING, handshake, waitUntil: waitMs === 0 ? 0 : clock() + waitMs };
}

async function sendAll(options: SendOptions, lease: SinkLease, target: SinkTarget): Promise<SendResult> {
  const { db, clock, stopping, timeoutMs, accessOf, limits } = options;
  const { subscription, maker, reservation, allowedRate } = lease;
  const due = await dueDeliveries(db, subscription, clock(), allowedRate === null ? reservation.requests : 1);
  const outcomes: AttemptOutcome[] = [];
  const withheld: number[] = [];
  const failedSubjects = new Set<string>();
  const started = clock();
  let { failures, accepted } = lease;
  let waitUntil = 0;
  let isGone = false;
  for (const event of due) {
    if (stopping.aborted || waitUntil > 0 || isGone || clock() - started >= timeoutMs) break;
    // Events about one subject are delivered in order.
    if (failedSubjects.has(event.subject)) continue;
    const [isLeased, access] = await Promise.all([isLeaseValid(db, lease), accessOf(maker, target.group)]);
    // A subscription that has just been paused is recorded as such under the next lease.
    if (!isLeased || access.pauseReason !== undefined) break;
    if (!access.mayReceive(event.type, event.scope)) {
      withheld.push(event.id);
      continue;
    }
    const result = await attempt(options, target, event);
    if (!result) break;
    const { outcome, retryAfter } = result;
    outcomes.push(outcome);
    options.observe(outcome, event);
    if (outcome.state === 'delivered') {
      failures = 0;
      accepted ??= clock();
      if (allowedRate !== null) waitUntil = clock() + Math.ceil(60_000 / allowedRate);
      continue;
    }
    failures++;
    failedSubjects.add(event.subject);
    const newSinkWait = accepted === null ? newSinkDelay(limits.newSinkIntervalMs, failures) : 0;
    waitUntil = Math.max(retryAfter, backoffUntil(options, failures, clock()), newSinkWait && clock() + newSinkWait);
    isGone = outcome.status === 410;
    if (outcome.durationMs >= SLOW_MS) break;
  }
  return { ...NOTHING, outcomes, withheld, waitUntil, isGone };
}

interface SinkTarget {
  readonly subscription: string;
  readonly sink: string;
  readonly secrets: readonly string[];
  readonly connection: SinkConnection;
  /** The group of the subscription. */
  readonly group: ParentUid;
  /** The name of this server, which the sink has permitted by the handshake; undefined if none is required. */
  readonly origin: string | undefined;
}

interface AttemptResult {
  readonly outcome: AttemptOutcome;
  /** The time of the Retry-After header; 0 if there is none. */
  readonly retryAfter: number;
}

/** Returns undefined if the request was cancelled because this server stops. That does not count as an attempt. */
async function attempt(
  options: SendOptions,
  target: SinkTarget,
  event: DueDelivery,
): Promise<AttemptResult | undefined> {
  const { clock, cancelling, tracing } = options;
  const attempted = clock();
  const body = eventData(event);
  const headers = await headersOf(options, target, event, body, attempted);
  const started = performance.now();
  let status: number | undefined;
  let error: string | undefined;
  let retryAfter = 0;
  try {
    const send = (added: Readonly<Record<string, string>>) =>
      target.connection.send('POST', { ...headers, ...added }, body, cancelling);
    // Existing receivers expect a trace context, also from a server that exports no traces.
    const response = await (tracing ? traceAttempt(tracing, target, event, send) : send(newTraceHeaders()));
    status = response.status;
    if (status < 200 || status >= 300) error = `it answered with status ${status}`;
    retryAfter = error === undefined ? 0 : readRetryAfter(response.headers['retry-after'], clock());
  } catch (failure) {
    if (cancelling.aborted) return undefined;
    error = (failure as Error).message;
  }
  const attempts = event.attempts + 1;
  const durationMs = Math.round(performance.now() - started);
  const common = { id: event.id, attempts, attempted, durationMs, status, error };
  if (error === undefined) return { outcome: { ...common, state: 'delivered', due: undefined }, retryAfter };
  const next = status === 410 ? undefined : nextAttempt(options, attempts, clock());
  const due = next === undefined ? undefined : Math.max(next, retryAfter);
  return { outcome: { ...common, state: due === undefined ? 'failed' : 'pending', due }, retryAfter };
}

async function headersOf(
  { accessTokens, publicUrl }: SendOptions,
  { subscription, sink, secrets, origin }: SinkTarget,
  event: DueDelivery,
  body: string,
  now: number,
): Promise<Record<string, string>> {
  const digest = `sha256:${createHash('sha256').update(body).digest('hex')}`;
  const token = await accessTokens.signAssertion({
    subject: `webhook:${parentOf(subscription)}`,
    audience: 'customer',
    // Receivers read the digest from this token. Whether its claim has one name or two is not specified, so it has
    // both.
    claims: { webhook: { digest }, 'webhook.digest': digest },
    lifetimeMs: TOKEN_MS,
  });
  return {
    ...cloudEventHeaders(event, { publicUrl, subscription, sink }),
    ...signatureHeaders({ id: event.event_id, now, body }, secrets),
    authorization: `Bearer ${token}`,
    ...(origin !== undefined && { origin }),
  };
}

/** Decrypts the secrets to sign with, the newest first. */
async function openSecrets(
  { unseal, clock }: SendOptions,
  uid: string,
  { secret, previous }: WebhookSecrets,
): Promise<string[]> {
  const sealed = previous && previous.until > clock() ? [secret, previous.secret] : [secret];
  return Promise.all(sealed.map((one) => unseal(one, secretContext(uid))));
}
