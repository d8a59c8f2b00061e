import type { Clock } from '../base/clock.ts';
import { createLru } from '../base/lru.ts';

export interface RateLimiterOptions {
  /** How much each key may spend per second. */
  readonly perSecond: number;
  /** How many seconds' worth a key may spend at once. */
  readonly burstSeconds: number;
  /** How many keys are remembered. The budget of a forgotten key is full again. */
  readonly capacity: number;
  readonly clock: Clock;
}

/** A budget per key that refills continuously (token bucket). In memory, so each process has its own. */
export interface RateLimiter {
  /** Spends `cost` and returns 0. If the budget is too small, spends nothing and returns the delay until it is not. */
  spend(key: string, cost?: number): number;
  /** Spends `cost`, even if the budget is smaller: for a request whose cost is known only after it. */
  charge(key: string, cost: number): void;
  /** The delay in milliseconds until the budget of `key` is enough for `cost`. */
  delay(key: string, cost?: number): number;
}

/**
 * One number per key is enough: the time at which its budget is full again. So a request takes one map lookup, and
 * nothing is allocated except for a new key.
 */
interface Budget {
  fullAt: number;
}

export function createRateLimiter({ perSecond, burstSeconds, capacity, clock }: RateLimiterOptions): RateLimiter {
  const budgets = createLru<string, Budget>(capacity);
  const intervalMs = 1000 / perSecond;
  // At least one request: the burst of a slow rate could otherwise be less than that.
  const windowMs = Math.max(burstSeconds * 1000, intervalMs);

  /** The time at which a budget is full. Bounded, so that a clock that was set back does not lock a key out. */
  const fullAtOf = (budget: Budget | undefined, now: number): number =>
    budget === undefined ? now : Math.min(Math.max(budget.fullAt, now), now + windowMs);

  function store(key: string, budget: Budget | undefined, fullAt: number): void {
    if (budget) budget.fullAt = fullAt;
    else budgets.set(key, { fullAt });
  }

  return {
    spend(key, cost = 1) {
      const now = clock();
      const budget = budgets.get(key);
      const fullAt = fullAtOf(budget, now) + cost * intervalMs;
      const delay = fullAt - now - windowMs;
      if (delay > TOLERANCE_MS) return delay;
      store(key, budget, fullAt);
      return 0;
    },
    charge(key, cost) {
      const now = clock();
      const budget = budgets.get(key);
      store(key, budget, fullAtOf(budget, now) + cost * intervalMs);
    },
    delay(key, cost = 1) {
      const now = clock();
      const delay = fullAtOf(budgets.get(key), now) + cost * intervalMs - now - windowMs;
      return delay > TOLERANCE_MS ? delay : 0;
    },
  };
}

/** Sums of fractions are not exact. */
const TOLERANCE_MS = 1e-6;
