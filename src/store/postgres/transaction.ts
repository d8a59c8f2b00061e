import type pg from 'pg';
import type { MaybePromise } from '../../base/maybe-promise.ts';
import { unavailable } from '../errors.ts';
import type { Reader, Transaction } from '../store.ts';
import { guardTransaction, type Statements } from '../transaction-guard.ts';
import type { Row, Value } from '../value.ts';
import { type Connection, type StatementPreparer, takeConnection } from './connection.ts';
import { isConflict } from './errors.ts';

export const BINARY_COLLATION = ' COLLATE "C"';

/** Runs `work` in a transaction of its own. */
export async function runTransaction<T>(
  pool: pg.Pool,
  preparer: StatementPreparer,
  work: (tx: Transaction) => MaybePromise<T>,
): Promise<T> {
  const connection = await takeConnection(pool);
  const { query } = connection;
  const guarded = guardTransaction(statementsOn(connection, preparer));
  try {
    // Not awaited: the first statement is sent in the same packet, and fails if this one does.
    query('BEGIN ISOLATION LEVEL READ COMMITTED').catch(() => {});
    const value = await work(guarded.tx);
    if (guarded.failure() !== undefined) throw guarded.failure();
    guarded.end();
    await commit(connection);
    return value;
  } catch (error) {
    guarded.end();
    await rollBack(connection);
    throw isConflict(connection.failure()) ? connection.failure() : error;
  } finally {
    connection.release();
  }
}

/** Runs `work` with a reader that sees one state of the database. */
export async function runSnapshot<T>(
  pool: pg.Pool,
  preparer: StatementPreparer,
  work: (reader: Reader) => Promise<T>,
): Promise<T> {
  const connection = await takeConnection(pool);
  try {
    await connection.query('BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY');
    return await work(statementsOn(connection, preparer));
  } finally {
    await rollBack(connection);
    connection.release();
  }
}

function statementsOn({ query, insert }: Connection, preparer: StatementPreparer): Statements {
  // Prepared synchronously: if a parameter is refused, the transaction must fail before the next statement is sent.
  const rowsOf = <R extends Row>(sql: string, params: Value[]): Promise<R[]> =>
    query<R>(preparer.prepare(sql, params)).then(({ rows }) => rows);
  const reader = (lockClause: string): Reader => ({
    all: <R extends Row>(sql: string, ...params: Value[]) => rowsOf<R>(sql + lockClause, params),
    get: <R extends Row>(sql: string, ...params: Value[]): Promise<R | undefined> =>
      rowsOf<R>(sql + lockClause, params).then(([row]) => row),
    binaryCollation: BINARY_COLLATION,
  });
  return {
    ...reader(''),
    forShare: reader(' FOR SHARE'),
    forUpdate: reader(' FOR UPDATE'),
    forUpdateSkipLocked: reader(' FOR UPDATE SKIP LOCKED'),
    isOnlyWriter: false,
    isShared: false,
    insert: (bulk, values) => insert(preparer.prepareInsert(bulk, values)),
    run: (sql, ...params) => query(preparer.prepare(sql, params)).then(({ rowCount }) => rowCount ?? 0),
    runReturning: <R extends Row>(sql: string, ...params: Value[]) => rowsOf<R>(sql, params),
  };
}

export async function commit({ query, isBroken, failure }: Connection): Promise<void> {
  await query('COMMIT').catch((error: unknown) => {
    throw isBroken()
      ? unavailable('the connection to the database was lost during the commit; the change may have been made', error)
      : error;
  });
  // After a failed statement that was not awaited, PostgreSQL turns the COMMIT into a ROLLBACK and reports success.
  if (failure() !== undefined) throw failure();
}

/** A broken connection needs no ROLLBACK: the database rolls back when it notices. */
export async function rollBack({ query, isBroken }: Connection): Promise<void> {
  if (!isBroken()) await query('ROLLBACK').catch(() => {});
}
