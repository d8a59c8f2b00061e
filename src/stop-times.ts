import { DELIVERY_STOP_MS, REQUESTS_STOP_MS } from './base/stop-grace.ts';
import type { Config } from './config.ts';
import { isLoopback } from './config-values.ts';

/** Long enough for a load balancer that checks /readyz every two seconds. */
const DEFAULT_DRAIN_MS = 5_000;

/** How long connections without a request stay open after the drain, for requests that are just arriving. */
const IDLE_MS = 500;

/** For the rest of a stop, such as closing the database on a busy machine. */
const MARGIN_MS = 10_000;

/** The longest time of each phase of a stop, in their order. */
export interface StopTimes {
  /** Between the failing of /readyz and the closing of the port. */
  readonly drainMs: number;
  readonly idleMs: number;
  readonly requestsMs: number;
  readonly deliveriesMs: number;
}

/** By default, a server that only this machine can reach does not drain: no load balancer is in front of it. */
export function stopTimesOf({ drain, listen }: Pick<Config, 'drain' | 'listen'>): StopTimes {
  const drainMs = drain ?? (isLoopback(listen) ? 0 : DEFAULT_DRAIN_MS);
  return { drainMs, idleMs: Math.min(IDLE_MS, drainMs), requestsMs: REQUESTS_STOP_MS, deliveriesMs: DELIVERY_STOP_MS };
}

/** After this time a process that is still stopping is killed. */
export const stopLimitMs = ({ drainMs, idleMs, requestsMs, deliveriesMs }: StopTimes): number =>
  drainMs + idleMs + requestsMs + deliveriesMs + MARGIN_MS;
