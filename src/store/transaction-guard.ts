import type { MaybePromise } from '../base/maybe-promise.ts';
import type { Reader, Transaction } from './store.ts';

export interface GuardedTransaction {
  readonly tx: Transaction;
  /** The error of the first statement of this transaction that failed. */
  failure(): unknown;
  /** Refuses every later statement through `tx`. */
  end(): void;
}

/** The part of a transaction that each database implements. */
export type Statements = Omit<Transaction, 'runUnawaited' | 'insertUnawaited'>;

/**
 * Wraps the transaction that one run of a write's work uses, so that both databases fail alike. After a failed
 * statement no other runs, and a statement that was not awaited cannot end up in a later transaction on the same
 * connection.
 */
export function guardTransaction(statements: Statements): GuardedTransaction {
  let isOpen = true;
  let failure: unknown;

  const fail = (error: unknown): never => {
    failure ??= error;
    throw error;
  };
  const guard = <T>(statement: () => MaybePromise<T>): MaybePromise<T> => {
    if (!isOpen) throw new Error('a statement was sent after the end of its transaction: await every statement');
    if (failure !== undefined) throw failure;
    try {
      const result = statement();
      return result instanceof Promise ? result.catch(fail) : result;
    } catch (error) {
      return fail(error);
    }
  };
  const guardReader = (reader: Reader): Reader => ({
    all: (sql, ...params) => guard(() => reader.all(sql, ...params)),
    get: (sql, ...params) => guard(() => reader.get(sql, ...params)),
    binaryCollation: reader.binaryCollation,
  });
  /** The error can be ignored here: `fail` has recorded it for the end of the transaction. */
  const unawaited = (done: MaybePromise<unknown>): void => {
    if (done instanceof Promise) done.catch(() => {});
  };

  return {
    tx: {
      ...guardReader(statements),
      // Created on use: most transactions use none or one of these.
      get forShare() {
        return guardReader(statements.forShare);
      },
      get forUpdate() {
        return guardReader(statements.forUpdate);
      },
      get forUpdateSkipLocked() {
        return guardReader(statements.forUpdateSkipLocked);
      },
      isOnlyWriter: statements.isOnlyWriter,
      isShared: statements.isShared,
      quotas: undefined,
      insert: (insert, values) => (values.length === 0 ? [] : guard(() => statements.insert(insert, values))),
      insertUnawaited: (insert, values) =>
        values.length === 0 ? undefined : unawaited(guard(() => statements.insert(insert, values))),
      run: (sql, ...params) => guard(() => statements.run(sql, ...params)),
      runUnawaited: (sql, ...params) => unawaited(guard(() => statements.run(sql, ...params))),
      runReturning: (sql, ...params) => guard(() => statements.runReturning(sql, ...params)),
    },
    failure: () => failure,
    end() {
      isOpen = false;
    },
  };
}
