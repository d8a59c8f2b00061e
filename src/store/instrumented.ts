import { ApiError } from '../base/errors.ts';
import type { MaybePromise } from '../base/maybe-promise.ts';
import type { DatabaseOperation, Metrics } from '../base/metrics.ts';
import { isUnavailable } from './errors.ts';
import { type Store, UniqueViolation } from './store.ts';

/** Returns the same store, with every read and every transaction counted and timed, and every failure reported. */
export function instrumentStore(
  store: Store,
  { observeDatabase }: Pick<Metrics, 'observeDatabase'>,
  reportFailure: (error: unknown) => void = () => {},
): Store {
  const secondsSince = (start: number): number => (performance.now() - start) / 1000;

  function observeFailure(operation: DatabaseOperation, start: number, error: unknown): unknown {
    const isRefused = isRefusal(error);
    observeDatabase(operation, isRefused ? 'refused' : 'error', secondsSince(start));
    if (!isRefused) reportFailure(error);
    return error;
  }

  /** Returns a value as a value and not as a promise: a read on SQLite must not wait for the event loop. */
  function observeResult<T>(operation: DatabaseOperation, start: number, result: MaybePromise<T>): MaybePromise<T> {
    if (result instanceof Promise) return observePromise(operation, start, result);
    observeDatabase(operation, 'ok', secondsSince(start));
    return result;
  }

  async function observePromise<T>(operation: DatabaseOperation, start: number, result: Promise<T>): Promise<T> {
    try {
      const value = await result;
      observeDatabase(operation, 'ok', secondsSince(start));
      return value;
    } catch (error) {
      throw observeFailure(operation, start, error);
    }
  }

  const { reader } = store;
  return {
    ...store,
    reader: {
      ...reader,
      all(sql, ...params) {
        const start = performance.now();
        try {
          return observeResult('read', start, reader.all(sql, ...params));
        } catch (error) {
          throw observeFailure('read', start, error);
        }
      },
      get(sql, ...params) {
        const start = performance.now();
        try {
          return observeResult('read', start, reader.get(sql, ...params));
        } catch (error) {
          throw observeFailure('read', start, error);
        }
      },
    },
    write: async (work, options) => observePromise('write', performance.now(), store.write(work, options)),
  };
}

/** Whether the server refused the request, rather than the database failed. */
const isRefusal = (error: unknown): boolean =>
  error instanceof UniqueViolation || (error instanceof ApiError && !isUnavailable(error));
