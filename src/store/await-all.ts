import type { MaybePromise } from '../base/maybe-promise.ts';

/**
 * Waits for statements that do not wait for each other: sent one behind the other, they cost one way to the database and
 * back. Also when one fails it waits for all, so that none is left behind in a transaction that ends; then it throws the
 * first failure in their order.
 */
export async function awaitAll(...statements: readonly MaybePromise<unknown>[]): Promise<void> {
  for (const outcome of await Promise.allSettled(statements)) {
    if (outcome.status === 'rejected') throw outcome.reason;
  }
}
