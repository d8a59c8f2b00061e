/** How patient delivery is; all in milliseconds. */
export interface Patience {
  /** How long to wait before each attempt, the first included. */
  readonly schedule: readonly number[];
  /** A sink that failed for so long is disabled. */
  readonly giveUpMs: number;
}

/** After so many failures one after the other the sink is taken to be down, and gets a rest. */
const REST_AFTER = 5;
const MAX_REST = 5 * 60 * 1000;
const MAX_RETRY_AFTER = 24 * 60 * 60 * 1000;

/** When to send next what was sent `attempts` times in vain; nothing when that was the last time. */
export function nextAttempt({ schedule }: Patience, attempts: number, now: number): number | undefined {
  const delay = schedule[attempts];
  return delay === undefined ? undefined : now + delay;
}

/**
 * Until when to leave a sink alone that failed so often in a row; 0 for not at all. What waits meanwhile keeps all of its
 * attempts, so that a long outage loses nothing, and a dead sink costs one attempt in five minutes.
 */
export function restUntil({ schedule }: Patience, failures: number, now: number): number {
  if (failures < REST_AFTER) return 0;
  const delay = schedule[Math.min(failures - REST_AFTER + 1, schedule.length - 1)] ?? 0;
  return now + Math.min(delay, MAX_REST);
}

/** Until when a sink asks to be left alone (RFC 9110, section 10.2.3); 0 for not at all. */
export function readRetryAfter(header: string | undefined, now: number): number {
  if (header === undefined) return 0;
  const until = /^\d{1,9}$/.test(header) ? now + Number(header) * 1000 : Date.parse(header);
  return until > now ? Math.min(until, now + MAX_RETRY_AFTER) : 0;
}
