import { ApiError } from '../base/errors.ts';
import type { MaybePromise } from '../base/maybe-promise.ts';
import type { DatabaseOperation, Metrics } from '../base/metrics.ts';
import { isUnavailable } from './errors.ts';
import { type Store, UniqueViolation } from './store.ts';

/** The same store, with every read and every transaction counted and timed. */
export function instrumentStore(store: Store, { observeDatabase }: Pick<Metrics, 'observeDatabase'>): Store {
  const secondsSince = (start: number): number => (performance.now() - start) / 1000;

  function failed(operation: DatabaseOperation, start: number, error: unknown): unknown {
    observeDatabase(operation, isRefusal(error) ? 'refused' : 'error', secondsSince(start));
    return error;
  }

  /** What came at once is passed on at once: SQLite answers without a turn of the event loop. */
  function observed<T>(operation: DatabaseOperation, start: number, result: MaybePromise<T>): MaybePromise<T> {
    if (result instanceof Promise) return observedLater(operation, start, result);
    observeDatabase(operation, 'ok', secondsSince(start));
    return result;
  }

  async function observedLater<T>(operation: DatabaseOperation, start: number, result: Promise<T>): Promise<T> {
    try {
      const value = await result;
      observeDatabase(operation, 'ok', secondsSince(start));
      return value;
    } catch (error) {
      throw failed(operation, start, error);
    }
  }

  const { reader } = store;
  return {
    reader: {
      ...reader,
      all(sql, ...params) {
        const start = performance.now();
        try {
          return observed('read', start, reader.all(sql, ...params));
        } catch (error) {
          throw failed('read', start, error);
        }
      },
      get(sql, ...params) {
        const start = performance.now();
        try {
          return observed('read', start, reader.get(sql, ...params));
        } catch (error) {
          throw failed('read', start, error);
        }
      },
    },
    write: async (work, how) => observedLater('write', performance.now(), store.write(work, how)),
    ping: () => store.ping(),
    close: () => store.close(),
  };
}

/** Whether a rule of ours ended the work, rather than trouble with the database. */
const isRefusal = (error: unknown): boolean =>
  error instanceof UniqueViolation || (error instanceof ApiError && !isUnavailable(error));
