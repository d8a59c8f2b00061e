import type { Clock } from '../base/clock.ts';
import type { Log } from '../base/log.ts';
import { adviceFor, isUnavailable } from './errors.ts';

/** How often the same failure is logged. While the database fails, every request does. */
const INTERVAL_MS = 10_000;

/**
 * Returns a function that logs why the database cannot be used, with the database's own message. Clients get only the
 * description. Other errors are bugs, and the request that they occur in logs them.
 */
export function createFailureLog(log: Pick<Log, 'error'>, clock: Clock, database: string): (error: unknown) => void {
  const loggedAt = new Map<string, number>();
  return (error) => {
    if (!isUnavailable(error)) return;
    const now = clock();
    if (now - (loggedAt.get(error.message) ?? Number.NEGATIVE_INFINITY) < INTERVAL_MS) return;
    // The messages are constants, so there are few of them.
    loggedAt.set(error.message, now);
    log.error({ error, database }, ['the database cannot be used', adviceFor(error)].filter(Boolean).join(': '));
  };
}
