import { ApiError } from '../base/errors.ts';
import type { DatabaseOperation, Metrics } from '../base/metrics.ts';
import { isUnavailable } from './errors.ts';
import { type Maybe, type Store, UniqueViolation } from './store.ts';

/** The same store, with every read and every transaction counted and timed. */
export function observeStore(store: Store, { observeDatabase }: Pick<Metrics, 'observeDatabase'>): Store {
  function timed<T>(operation: DatabaseOperation, run: () => Maybe<T>): Maybe<T> {
    const start = performance.now();
    const seconds = (): number => (performance.now() - start) / 1000;
    const succeeded = (result: T): T => {
      observeDatabase(operation, 'ok', seconds());
      return result;
    };
    const failed = (error: unknown): never => {
      observeDatabase(operation, isRefusal(error) ? 'refused' : 'error', seconds());
      throw error;
    };
    let result: Maybe<T>;
    try {
      result = run();
    } catch (error) {
      return failed(error);
    }
    // What came at once is passed on at once: SQLite answers without a turn of the event loop.
    return result instanceof Promise ? result.then(succeeded, failed) : succeeded(result);
  }

  const { reader } = store;
  return {
    reader: {
      bytewise: reader.bytewise,
      all: (sql, ...params) => timed('read', () => reader.all(sql, ...params)),
      get: (sql, ...params) => timed('read', () => reader.get(sql, ...params)),
    },
    write: async (work) => timed('write', () => store.write(work)),
    ping: () => store.ping(),
    close: () => store.close(),
  };
}

/** Whether a rule of ours ended the work, rather than trouble with the database. */
const isRefusal = (error: unknown): boolean =>
  error instanceof UniqueViolation || (error instanceof ApiError && !isUnavailable(error));
