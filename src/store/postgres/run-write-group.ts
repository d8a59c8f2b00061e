import type { MaybePromise } from '../../base/maybe-promise.ts';
import type { BulkInsert } from '../bulk-insert.ts';
import type { Reader, Transaction } from '../store.ts';
import { guardTransaction } from '../transaction-guard.ts';
import type { Row, Value } from '../value.ts';
import type { Connection, StatementPreparer } from './connection.ts';
import { createStatementBatch, GROUP_ABORTED, type StatementBatch } from './statement-batch.ts';
import { BINARY_COLLATION, commit, rollBack } from './transaction.ts';

export type Work = (tx: Transaction) => MaybePromise<unknown>;

/** The result of one member of a group: a value, an error, or that it must run again, in a group or alone. */
export type MemberOutcome =
  | { readonly is: 'done'; readonly value: unknown }
  | { readonly is: 'failed'; readonly error: unknown }
  | { readonly is: 'retry'; readonly alone: boolean };

/**
 * One member that waits for a lock keeps the whole group waiting, so it waits only briefly. Alone, it may wait longer.
 * The limit is much longer than other servers need to commit a group, which locks the counters of an organization.
 */
const BEGIN = 'BEGIN ISOLATION LEVEL READ COMMITTED; SET LOCAL lock_timeout = 500';

/** The error of a member that does more than read and insert. It runs again in a transaction of its own. */
const NOT_APPEND_ONLY = new Error('a write that changes rows cannot share its transaction');

/**
 * Runs several pieces of append-only work concurrently in one transaction, with their statements batched. They see each
 * other's rows, as if one had run before the other, which is sound because either all commit or none. If one fails
 * after it has written, the transaction is rolled back and the others run again without it.
 */
export async function runGroup(
  connection: Connection,
  preparer: StatementPreparer,
  works: readonly Work[],
): Promise<MemberOutcome[]> {
  const batch = createStatementBatch(connection, preparer);
  // Not awaited: the first statements are sent in the same packet, and fail if this one does.
  connection.query(BEGIN).catch(batch.fail);
  const members = works.map((work) => createMember(batch, work));
  const outcomes = await Promise.all(members.map((member) => member.run()));
  batch.send();
  try {
    if (batch.failure() === undefined) {
      await commit(connection);
      return outcomes;
    }
  } catch (error) {
    // The commit may have succeeded, so nothing may run again.
    if (connection.isBroken()) return members.map(() => ({ is: 'failed', error }));
  }
  await rollBack(connection);
  // If no member is known to be the cause, each runs alone.
  const isCauseKnown = members.some((member) => member.causedRollback());
  return members.map((member) => ({ is: 'retry', alone: member.causedRollback() || !isCauseKnown }));
}

interface Member {
  run(): Promise<MemberOutcome>;
  /** Whether its own error was the cause of the rollback: it failed after it had written. */
  causedRollback(): boolean;
}

function createMember(batch: StatementBatch, work: Work): Member {
  let wrote = false;
  let causedRollback = false;

  const rowsOf = async (sql: string, params: readonly Value[]): Promise<readonly Row[]> =>
    (await batch.read(sql, params, wrote)).rows;
  const reader = (lockClause: string): Reader => ({
    all: async <R extends Row>(sql: string, ...params: Value[]) => [...(await rowsOf(sql + lockClause, params))] as R[],
    get: async <R extends Row>(sql: string, ...params: Value[]) =>
      (await rowsOf(sql + lockClause, params))[0] as R | undefined,
    binaryCollation: BINARY_COLLATION,
  });
  const refuse = (): never => {
    throw NOT_APPEND_ONLY;
  };
  const exclusiveReader: Reader = { all: refuse, get: refuse, binaryCollation: BINARY_COLLATION };
  const guarded = guardTransaction({
    ...reader(''),
    // Allowed, because any number of transactions can have a share lock on the same row.
    forShare: reader(' FOR SHARE'),
    forUpdate: exclusiveReader,
    forUpdateSkipLocked: exclusiveReader,
    isOnlyWriter: false,
    isShared: true,
    insert<R extends Row>(insert: BulkInsert, values: readonly Value[]) {
      wrote = true;
      return batch.insert(insert, values) as Promise<R[]>;
    },
    run: refuse,
    runReturning: refuse,
  });

  return {
    async run() {
      try {
        const value = await work(guarded.tx);
        if (guarded.failure() !== undefined) throw guarded.failure();
        return { is: 'done', value };
      } catch (error) {
        causedRollback = wrote && error !== batch.failure();
        if (wrote) batch.fail(GROUP_ABORTED);
        return guarded.failure() === NOT_APPEND_ONLY ? { is: 'retry', alone: true } : { is: 'failed', error };
      } finally {
        guarded.end();
      }
    },
    causedRollback: () => causedRollback,
  };
}
