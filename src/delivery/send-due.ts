import { createHash } from 'node:crypto';
import type { Clock } from '../base/clock.ts';
import { parentOf } from '../base/uid.ts';
import type { Subscription } from '../contract/gen/chainguard/platform/events/v2/subscriptions_pb.js';
import { subscriptions } from '../domains/events/subscriptions.ts';
import { type Secrets, secretContext } from '../domains/events/webhook-secret.ts';
import type { Tokens } from '../identity/tokens/access-tokens.ts';
import { find } from '../resource/read.ts';
import type { Reader } from '../store/store.ts';
import { cloudEventHeaders, eventData } from './cloud-event.ts';
import { openWire, type PostOptions, type Wire } from './http-post.ts';
import { type Claim, type DueDelivery, dueDeliveries, isHeld, type Outcome } from './queue.ts';
import { nextAttempt, type Patience, readRetryAfter, restUntil } from './retry-schedule.ts';
import { signatureHeaders } from './webhook-signature.ts';

/** The most that one round sends: then others get their turn. */
const MAX_DELIVERIES = 20;
/** A failure that took so long ends the round: the sink goes on among those that fail, and takes no place of others. */
const SLOW_MS = 1_000;
/** How long receivers may take to look at a token. */
const TOKEN_MS = 15 * 60 * 1000;

export interface RoundOptions extends PostOptions, Patience {
  readonly db: Reader;
  readonly clock: Clock;
  readonly tokens: Pick<Tokens, 'attest'>;
  readonly unseal: (sealed: string, context: string) => string;
  readonly publicUrl: () => string;
  /** No new delivery begins, and after some grace the running one is cut off. */
  readonly stopping: AbortSignal;
  readonly cutOff: AbortSignal;
  readonly observe: (outcome: Outcome, event: DueDelivery) => void;
}

/** What a round came to. */
export interface Round {
  readonly outcomes: readonly Outcome[];
  readonly rest: number;
  /** The sink says that it is gone for good. */
  readonly gone: boolean;
}

/** Sends what is due for one subscription, one after the other in the order of the events. */
export async function sendRound(options: RoundOptions, claim: Claim): Promise<Round> {
  const { db, clock, stopping, timeoutMs } = options;
  const stored = await find(db, subscriptions, claim.subscription);
  if (!stored) return { outcomes: [], rest: 0, gone: false };
  const { sink } = stored.message as Subscription;
  const secrets = openSecrets(options, claim.subscription, stored.state as unknown as Secrets);
  const due = await dueDeliveries(db, claim.subscription, clock(), MAX_DELIVERIES);
  const wire = openWire(sink, options);
  const outcomes: Outcome[] = [];
  const delayed = new Set<string>();
  const started = clock();
  let failures = claim.failures;
  let rest = 0;
  let gone = false;
  try {
    for (const event of due) {
      if (stopping.aborted || rest > 0 || gone || clock() - started >= timeoutMs) break;
      // What happens to one subject arrives in its order.
      if (delayed.has(event.subject)) continue;
      if (!(await isHeld(db, claim))) break;
      const result = await attempt(options, { sink, secrets, wire, subscription: claim.subscription }, event);
      if (!result) break;
      const { outcome, retryAfter } = result;
      outcomes.push(outcome);
      options.observe(outcome, event);
      if (outcome.state === 'delivered') {
        failures = 0;
        continue;
      }
      failures++;
      delayed.add(event.subject);
      rest = Math.max(retryAfter, restUntil(options, failures, clock()));
      gone = outcome.status === 410;
      if (outcome.durationMs >= SLOW_MS) break;
    }
  } finally {
    wire.close();
  }
  return { outcomes, rest, gone };
}

interface Target {
  readonly subscription: string;
  readonly sink: string;
  readonly secrets: readonly string[];
  readonly wire: Wire;
}

interface Attempted {
  readonly outcome: Outcome;
  /** Until when the sink asks to be left alone; 0 for not at all. */
  readonly retryAfter: number;
}

/** Nothing when it was cut off because this server stops: that counts for no attempt. */
async function attempt(options: RoundOptions, target: Target, event: DueDelivery): Promise<Attempted | undefined> {
  const { clock, cutOff } = options;
  const attempted = clock();
  const body = eventData(event);
  const headers = await headersOf(options, target, event, body, attempted);
  const began = performance.now();
  let status: number | undefined;
  let error: string | undefined;
  let retryAfter = 0;
  try {
    const answer = await target.wire.post(headers, body, cutOff);
    status = answer.status;
    if (status < 200 || status >= 300) error = `it answered with status ${status}`;
    retryAfter = error === undefined ? 0 : readRetryAfter(answer.retryAfter, clock());
  } catch (failure) {
    if (cutOff.aborted) return undefined;
    error = (failure as Error).message;
  }
  const attempts = event.attempts + 1;
  const durationMs = Math.round(performance.now() - began);
  const tried = { id: event.id, attempts, attempted, durationMs, status, error };
  if (error === undefined) return { outcome: { ...tried, state: 'delivered', due: undefined }, retryAfter };
  const next = status === 410 ? undefined : nextAttempt(options, attempts, clock());
  const due = next === undefined ? undefined : Math.max(next, retryAfter);
  return { outcome: { ...tried, state: due === undefined ? 'failed' : 'pending', due }, retryAfter };
}

async function headersOf(
  { tokens, publicUrl }: RoundOptions,
  { subscription, sink, secrets }: Target,
  event: DueDelivery,
  body: string,
  now: number,
): Promise<Record<string, string>> {
  const digest = `sha256:${createHash('sha256').update(body).digest('hex')}`;
  const token = await tokens.attest({
    subject: `webhook:${parentOf(subscription)}`,
    audience: 'customer',
    // Receivers of this token are known to read the digest; whether as one name or as two, the facts leave open.
    claims: { webhook: { digest }, 'webhook.digest': digest },
    lifetimeMs: TOKEN_MS,
  });
  return {
    ...cloudEventHeaders(event, { source: publicUrl(), subscription, sink }),
    ...signatureHeaders({ id: event.event_id, now, body }, secrets),
    authorization: `Bearer ${token}`,
  };
}

/** The secrets to sign with, the newest first. */
function openSecrets({ unseal, clock }: RoundOptions, uid: string, { secret, previous }: Secrets): string[] {
  const sealed = previous && previous.until > clock() ? [secret, previous.secret] : [secret];
  return sealed.map((one) => unseal(one, secretContext(uid)));
}
