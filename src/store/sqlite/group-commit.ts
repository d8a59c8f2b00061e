import { setImmediate as nextTurn } from 'node:timers/promises';
import type { MaybePromise } from '../../base/maybe-promise.ts';
import { type BulkInsert, insertValues } from '../bulk-insert.ts';
import { isUnavailable, unavailable } from '../errors.ts';
import type { Transaction } from '../store.ts';
import { guardTransaction, type Statements } from '../transaction-guard.ts';
import type { Row, Value } from '../value.ts';
import type { Connection } from './connection.ts';

/** The writes of a batch run without yielding to other work of the process, so a batch must be short. */
const MAX_BATCH = 64;

interface PendingWrite {
  work(tx: Transaction): unknown;
  resolve(value: unknown): void;
  reject(error: unknown): void;
}

/** The statements around those of one write. */
interface Savepoint {
  readonly begin: readonly string[];
  readonly end: readonly string[];
  readonly rollBack: readonly string[];
}

const OWN_SAVEPOINT: Savepoint = {
  begin: ['SAVEPOINT write'],
  end: ['RELEASE write'],
  rollBack: ['ROLLBACK TO write', 'RELEASE write'],
};
const NO_SAVEPOINT: Savepoint = { begin: [], end: [], rollBack: ['ROLLBACK'] };

export interface GroupCommit {
  write<T>(work: (tx: Transaction) => MaybePromise<T>): Promise<T>;
  /** Resolves when no write is pending or running. */
  idle(): Promise<void>;
}

/**
 * Batches concurrent writes into one transaction, so that they share the sync to disk that a commit costs. Each has its
 * own savepoint: when it throws, only its changes are rolled back. A single write has none, because SQLite copies every
 * page that changes under a savepoint. No write returns before the commit.
 */
export function createGroupCommit(
  connection: Connection,
  begin: () => Promise<void>,
  /** Called after each transaction, whether it committed or not, and before its writes return. */
  onTransactionEnd: () => void,
): GroupCommit {
  // There is one writer at a time, so no row that a transaction has read can change before its commit.
  const statements: Statements = {
    ...connection,
    forShare: connection,
    forUpdate: connection,
    forUpdateSkipLocked: connection,
    isOnlyWriter: true,
    isShared: false,
    insert: <R extends Row>(insert: BulkInsert, values: readonly Value[]) =>
      insertValues<R>(insert, values, connection),
    runReturning: connection.all,
  };
  const pending: PendingWrite[] = [];
  let draining: Promise<void> | undefined;

  async function drain(): Promise<void> {
    while (pending.length > 0) {
      // Writes of the same turn of the event loop join the batch, and the process serves sockets between two batches.
      await nextTurn();
      await commitBatch(pending.splice(0, MAX_BATCH));
    }
    draining = undefined;
  }

  async function commitBatch(batch: readonly PendingWrite[]): Promise<void> {
    const settlers: (() => void)[] = [];
    try {
      await begin();
      for (const write of batch) {
        settlers.push(await (batch.length === 1 ? run(write, NO_SAVEPOINT) : run(write, OWN_SAVEPOINT)));
      }
      // A single write that failed has ended the transaction.
      if (connection.inTransaction()) connection.run('COMMIT');
      onTransactionEnd();
    } catch (cause) {
      rollBack();
      onTransactionEnd();
      // Also replaces the errors of writes that failed: a row that they conflicted with may be rolled back now.
      const error = isUnavailable(cause) ? cause : unavailable('the database could not commit', cause);
      for (const write of batch) write.reject(error);
      return;
    }
    for (const settle of settlers) settle();
  }

  /** Runs a write and returns a function that settles its promise, to be called after the commit. */
  async function run(write: PendingWrite, savepoint: Savepoint): Promise<() => void> {
    const guarded = guardTransaction(statements);
    for (const sql of savepoint.begin) connection.run(sql);
    try {
      const value = await write.work(guarded.tx);
      if (guarded.failure() !== undefined) throw guarded.failure();
      for (const sql of savepoint.end) connection.run(sql);
      return () => write.resolve(value);
    } catch (error) {
      // After a full disk or an I/O error SQLite may have rolled back the whole transaction, with all other writes.
      if (!connection.inTransaction()) throw guarded.failure() ?? error;
      for (const sql of savepoint.rollBack) connection.run(sql);
      return () => write.reject(error);
    } finally {
      guarded.end();
    }
  }

  function rollBack(): void {
    try {
      if (connection.inTransaction()) connection.run('ROLLBACK');
    } catch {
      // The next BEGIN fails with the reason.
    }
  }

  return {
    write: <T>(work: (tx: Transaction) => MaybePromise<T>) =>
      new Promise<T>((resolve, reject) => {
        pending.push({ work, resolve: (value) => resolve(value as T), reject });
        draining ??= drain();
      }),
    idle: async () => draining,
  };
}
