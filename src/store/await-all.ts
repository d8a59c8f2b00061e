import type { MaybePromise } from '../base/maybe-promise.ts';

/**
 * Waits for statements that were sent without waiting in between, so that all of them take one round trip to the
 * database. If one fails, it still waits for all, so that none is running when the transaction ends. Then it throws the
 * first failure in the order of the arguments.
 */
export async function awaitAll(...statements: readonly MaybePromise<unknown>[]): Promise<void> {
  for (const outcome of await Promise.allSettled(statements)) {
    if (outcome.status === 'rejected') throw outcome.reason;
  }
}
