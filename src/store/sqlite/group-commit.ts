import { setImmediate as nextTurn } from 'node:timers/promises';
import type { MaybePromise } from '../../base/maybe-promise.ts';
import { type BulkInsert, insertValues } from '../bulk-insert.ts';
import { isUnavailable, unavailable } from '../errors.ts';
import type { Row, Transaction, Value } from '../store.ts';
import { guardTransaction, type Statements } from '../transaction-guard.ts';
import type { Connection } from './connection.ts';

/** The jobs of a batch run without a pause for other work of the process, so a batch stays short. */
const MAX_BATCH = 64;

interface Job {
  work(tx: Transaction): unknown;
  resolve(value: unknown): void;
  reject(error: unknown): void;
}

/** What is said around the statements of a job, and to undo them. */
interface Frame {
  readonly before: readonly string[];
  readonly after: readonly string[];
  readonly undo: readonly string[];
}

const AMONG_OTHERS: Frame = {
  before: ['SAVEPOINT job'],
  after: ['RELEASE job'],
  undo: ['ROLLBACK TO job', 'RELEASE job'],
};
const ALONE: Frame = { before: [], after: [], undo: ['ROLLBACK'] };

export interface GroupCommit {
  write<T>(work: (tx: Transaction) => MaybePromise<T>): Promise<T>;
  /** Resolves when no write is waiting or under way. */
  idle(): Promise<void>;
}

/**
 * Writes that come together share a transaction, and with it the one sync to disk that a commit costs. Each has a
 * savepoint of its own: when it throws, it alone is undone. One that came alone has none, because SQLite copies every page
 * that changes under a savepoint. Nobody gets an answer before the commit.
 */
export function createGroupCommit(
  connection: Connection,
  begin: () => Promise<void>,
  /** Told when a transaction is over, however it went, and before anybody gets an answer. */
  ended: () => void,
): GroupCommit {
  // There is one writer at a time, so every read in a transaction is as good as locked.
  const statements: Statements = {
    ...connection,
    forShare: connection,
    forUpdate: connection,
    forUpdateSkipLocked: connection,
    isOnlyWriter: true,
    insert: <R extends Row>(insert: BulkInsert, values: readonly Value[]) =>
      insertValues<R>(insert, values, connection),
    runReturning: connection.all,
  };
  const waiting: Job[] = [];
  let draining: Promise<void> | undefined;

  async function drain(): Promise<void> {
    while (waiting.length > 0) {
      // Calls that arrived in the same turn of the event loop join the batch, and sockets get their turn between batches.
      await nextTurn();
      await commitTogether(waiting.splice(0, MAX_BATCH));
    }
    draining = undefined;
  }

  async function commitTogether(batch: readonly Job[]): Promise<void> {
    const answers: (() => void)[] = [];
    try {
      await begin();
      for (const job of batch) answers.push(await (batch.length === 1 ? run(job, ALONE) : run(job, AMONG_OTHERS)));
      // Unless the one job was undone.
      if (connection.inTransaction()) connection.run('COMMIT');
      ended();
    } catch (cause) {
      rollBack();
      ended();
      // Also those that failed by themselves: they may have done so over rows that are now undone.
      const error = isUnavailable(cause) ? cause : unavailable('the database could not commit', cause);
      for (const job of batch) job.reject(error);
      return;
    }
    for (const answer of answers) answer();
  }

  /** Runs a job and hands back the answer to give once the batch is committed. */
  async function run(job: Job, { before, after, undo }: Frame): Promise<() => void> {
    const session = guardTransaction(statements);
    for (const sql of before) connection.run(sql);
    try {
      const value = await job.work(session.tx);
      if (session.failure() !== undefined) throw session.failure();
      for (const sql of after) connection.run(sql);
      return () => job.resolve(value);
    } catch (error) {
      // A full disk or an I/O error can make SQLite undo the whole transaction: then no other job of it survives.
      if (!connection.inTransaction()) throw session.failure() ?? error;
      for (const sql of undo) connection.run(sql);
      return () => job.reject(error);
    } finally {
      session.end();
    }
  }

  function rollBack(): void {
    try {
      if (connection.inTransaction()) connection.run('ROLLBACK');
    } catch {
      // The next BEGIN will say what is wrong with the database.
    }
  }

  return {
    write: <T>(work: (tx: Transaction) => MaybePromise<T>) =>
      new Promise<T>((resolve, reject) => {
        waiting.push({ work, resolve: (value) => resolve(value as T), reject });
        draining ??= drain();
      }),
    idle: async () => draining,
  };
}
