import { createHash } from 'node:crypto';
import type { Clock } from '../base/clock.ts';
import { parentOf } from '../base/uid.ts';
import { subscriptions } from '../domains/events/subscriptions.ts';
import { secretContext, type WebhookSecrets } from '../domains/events/webhook-secret.ts';
import type { AccessTokens } from '../identity/tokens/access-tokens.ts';
import { find } from '../resource/read.ts';
import type { Reader } from '../store/store.ts';
import { cloudEventHeaders, eventData } from './cloud-event.ts';
import { type AttemptOutcome, type DueDelivery, dueDeliveries, isLeaseValid, type SinkLease } from './queue.ts';
import { backoffUntil, nextAttempt, type RetryPolicy, readRetryAfter } from './retry-schedule.ts';
import { openSinkConnection, type PostOptions, type SinkConnection } from './sink-connection.ts';
import { signatureHeaders } from './webhook-signature.ts';

/** The most deliveries that are sent under one lease, so that other sinks get a lease too. */
const MAX_DELIVERIES = 20;
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
  readonly unseal: (sealed: string, context: string) => string;
  readonly publicUrl: string;
  /** Aborted when the server stops: no further delivery is sent. */
  readonly stopping: AbortSignal;
  /** Aborted some time later: a running request is cancelled. */
  readonly cancelling: AbortSignal;
  readonly observe: (outcome: AttemptOutcome, event: DueDelivery) => void;
}

export interface SendResult {
  readonly outcomes: readonly AttemptOutcome[];
  /** The time before which nothing is sent to the sink; 0 if there is none. */
  readonly pausedUntil: number;
  /** Whether the sink responded with 410 Gone. */
  readonly isGone: boolean;
}

/** Sends the due deliveries of the leased sink, one after the other in the order of the events. */
export async function sendDue(options: SendOptions, lease: SinkLease): Promise<SendResult> {
  const { db, clock, stopping, timeoutMs } = options;
  const { subscription } = lease;
  const stored = await find(db, subscriptions, subscription);
  if (!stored) return { outcomes: [], pausedUntil: 0, isGone: false };
  const { sink } = stored.message;
  const secrets = openSecrets(options, subscription, stored.state as unknown as WebhookSecrets);
  const due = await dueDeliveries(db, subscription, clock(), MAX_DELIVERIES);
  const connection = openSinkConnection(sink, options);
  const outcomes: AttemptOutcome[] = [];
  const failedSubjects = new Set<string>();
  const started = clock();
  let failures = lease.failures;
  let pausedUntil = 0;
  let isGone = false;
  try {
    for (const event of due) {
      if (stopping.aborted || pausedUntil > 0 || isGone || clock() - started >= timeoutMs) break;
      // Events about one subject are delivered in order.
      if (failedSubjects.has(event.subject)) continue;
      if (!(await isLeaseValid(db, lease))) break;
      const result = await attempt(options, { sink, secrets, connection, subscription }, event);
      if (!result) break;
      const { outcome, retryAfter } = result;
      outcomes.push(outcome);
      options.observe(outcome, event);
      if (outcome.state === 'delivered') {
        failures = 0;
        continue;
      }
      failures++;
      failedSubjects.add(event.subject);
      pausedUntil = Math.max(retryAfter, backoffUntil(options, failures, clock()));
      isGone = outcome.status === 410;
      if (outcome.durationMs >= SLOW_MS) break;
    }
  } finally {
    connection.close();
  }
  return { outcomes, pausedUntil, isGone };
}

interface SinkTarget {
  readonly subscription: string;
  readonly sink: string;
  readonly secrets: readonly string[];
  readonly connection: SinkConnection;
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
  const { clock, cancelling } = options;
  const attempted = clock();
  const body = eventData(event);
  const headers = await headersOf(options, target, event, body, attempted);
  const started = performance.now();
  let status: number | undefined;
  let error: string | undefined;
  let retryAfter = 0;
  try {
    const response = await target.connection.post(headers, body, cancelling);
    status = response.status;
    if (status < 200 || status >= 300) error = `it answered with status ${status}`;
    retryAfter = error === undefined ? 0 : readRetryAfter(response.retryAfter, clock());
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
  { subscription, sink, secrets }: SinkTarget,
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
    ...cloudEventHeaders(event, { source: publicUrl, subscription, sink }),
    ...signatureHeaders({ id: event.event_id, now, body }, secrets),
    authorization: `Bearer ${token}`,
  };
}

/** Decrypts the secrets to sign with, the newest first. */
function openSecrets({ unseal, clock }: SendOptions, uid: string, { secret, previous }: WebhookSecrets): string[] {
  const sealed = previous && previous.until > clock() ? [secret, previous.secret] : [secret];
  return sealed.map((one) => unseal(one, secretContext(uid)));
}
