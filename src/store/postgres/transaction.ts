import type pg from 'pg';
import { unavailable } from '../errors.ts';
import type { Maybe, Row, Transaction, Value } from '../store.ts';
import { openSession } from '../transaction-guard.ts';
import { type Connection, type Preparing, takeConnection } from './connection.ts';
import { isConflict } from './errors.ts';

export const BYTEWISE = ' COLLATE "C"';
export const LOCK = { share: ' FOR SHARE', update: ' FOR UPDATE', free: ' FOR UPDATE SKIP LOCKED' };

/** Runs `work` in a transaction of its own. */
export async function transact<T>(
  pool: pg.Pool,
  preparing: Preparing,
  work: (tx: Transaction) => Maybe<T>,
): Promise<T> {
  const connection = await takeConnection(pool);
  const { ask } = connection;
  const { statement } = preparing;
  const session = openSession({
    // Prepared at once: what is refused here, without the database, must be known before anything else is sent.
    all: <R extends Row>(sql: string, ...params: Value[]) => ask<R>(statement(sql, params)).then(({ rows }) => rows),
    get: <R extends Row>(sql: string, ...params: Value[]): Promise<R | undefined> =>
      ask<R>(statement(sql, params)).then(({ rows }) => rows[0]),
    run: (sql, ...params) => ask(statement(sql, params)).then(({ rowCount }) => rowCount ?? 0),
    insert: (insertion, values) => connection.insert(preparing.rows(insertion, values)),
    bytewise: BYTEWISE,
    lock: LOCK,
  });
  try {
    // Not awaited: the first statement travels with it, and fails if it does.
    ask('BEGIN ISOLATION LEVEL READ COMMITTED').catch(() => {});
    const value = await work(session.tx);
    if (session.failure() !== undefined) throw session.failure();
    session.end();
    await commit(connection);
    return value;
  } catch (error) {
    session.end();
    await rollBack(connection);
    throw isConflict(connection.failure()) ? connection.failure() : error;
  } finally {
    connection.release();
  }
}

export async function commit({ ask, isBroken, failure }: Connection): Promise<void> {
  await ask('COMMIT').catch((error: unknown) => {
    throw isBroken()
      ? unavailable('the database was lost during the commit; the change may have been made', error)
      : error;
  });
  // Of a statement that failed while nobody waited for it, the commit made a rollback.
  if (failure() !== undefined) throw failure();
}

/** A broken connection needs none: the database does that when it notices. */
export async function rollBack({ ask, isBroken }: Connection): Promise<void> {
  if (!isBroken()) await ask('ROLLBACK').catch(() => {});
}
