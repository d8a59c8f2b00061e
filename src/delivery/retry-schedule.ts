/** When deliveries are retried, and when a sink is disabled. Times are in milliseconds. */
export interface RetryPolicy {
  /** The delay before each attempt, including the first. */
  readonly schedule: readonly number[];
  /** A sink that has failed for this long is disabled. */
  readonly giveUpMs: number;
}

/** After this many failures in a row the sink is considered down, and all deliveries to it wait for a backoff. */
const BACKOFF_AFTER_FAILURES = 5;
const MAX_BACKOFF = 5 * 60 * 1000;
const MAX_RETRY_AFTER = 24 * 60 * 60 * 1000;

/** Returns the time of the next attempt after `attempts` failed ones; undefined after the last attempt. */
export function nextAttempt({ schedule }: RetryPolicy, attempts: number, now: number): number | undefined {
  const delay = schedule[attempts];
  return delay === undefined ? undefined : now + delay;
}

/**
 * Returns until when nothing is sent to a sink after this many failures in a row; 0 for no backoff. Waiting deliveries
 * keep all of their attempts. So a long outage loses no events, and a sink that is down costs one attempt in five
 * minutes.
 */
export function backoffUntil({ schedule }: RetryPolicy, failures: number, now: number): number {
  if (failures < BACKOFF_AFTER_FAILURES) return 0;
  const delay = schedule[Math.min(failures - BACKOFF_AFTER_FAILURES + 1, schedule.length - 1)] ?? 0;
  return now + Math.min(delay, MAX_BACKOFF);
}

/**
 * Returns how long to wait after this many failures in a row at a sink or address that has never accepted anything. It may
 * belong to a third party that expects no requests, so it gets few.
 */
export const newSinkDelay = (intervalMs: number, failures: number): number =>
  Math.min(intervalMs * 2 ** Math.min(Math.max(failures - 1, 0), 20), MAX_BACKOFF);

/** Returns the time of a Retry-After header (RFC 9110, section 10.2.3); 0 if it is absent, invalid or in the past. */
export function readRetryAfter(header: string | undefined, now: number): number {
  if (header === undefined) return 0;
  const until = /^\d{1,9}$/.test(header) ? now + Number(header) * 1000 : Date.parse(header);
  return until > now ? Math.min(until, now + MAX_RETRY_AFTER) : 0;
}
