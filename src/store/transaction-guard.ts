import type { Maybe, Transaction } from './store.ts';

export interface Session {
  readonly tx: Transaction;
  /** The first error that a statement of this transaction met. */
  failure(): unknown;
  /** No statement runs through `tx` from here on. */
  end(): void;
}

/** What a connection offers to a transaction. */
export type Statements = Omit<Transaction, 'post' | 'postRows'>;

/**
 * The transaction that one run of a write's work sees. It makes both databases fail alike: after a failed statement
 * none other runs, and one that was not awaited cannot slip into a later transaction on the same connection.
 */
export function openSession(on: Statements): Session {
  let open = true;
  let failure: unknown;

  const fail = (error: unknown): never => {
    failure ??= error;
    throw error;
  };
  const guard = <T>(statement: () => Maybe<T>): Maybe<T> => {
    if (!open) throw new Error('a statement came after the end of its transaction');
    if (failure !== undefined) throw failure;
    try {
      const result = statement();
      return result instanceof Promise ? result.catch(fail) : result;
    } catch (error) {
      return fail(error);
    }
  };

  /** Its failure is kept for the end of the transaction. */
  const unawaited = (done: Maybe<unknown>): void => {
    if (done instanceof Promise) done.catch(() => {});
  };

  return {
    tx: {
      all: (sql, ...params) => guard(() => on.all(sql, ...params)),
      get: (sql, ...params) => guard(() => on.get(sql, ...params)),
      run: (sql, ...params) => guard(() => on.run(sql, ...params)),
      insert: (insertion, values) => (values.length === 0 ? [] : guard(() => on.insert(insertion, values))),
      post: (sql, ...params) => unawaited(guard(() => on.run(sql, ...params))),
      postRows: (insertion, values) =>
        values.length === 0 ? undefined : unawaited(guard(() => on.insert(insertion, values))),
      bytewise: on.bytewise,
      lock: on.lock,
    },
    failure: () => failure,
    end() {
      open = false;
    },
  };
}
