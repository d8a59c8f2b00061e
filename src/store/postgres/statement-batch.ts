import type pg from 'pg';
import { type BulkInsert, columnCount } from '../bulk-insert.ts';
import { refuseNul } from '../errors.ts';
import type { Row, Value } from '../value.ts';
import type { Connection, StatementPreparer } from './connection.ts';

type Result = pg.QueryResult<Row>;

/** Collects the statements that the members of a group issue in one turn of the event loop, and sends them together. */
export interface StatementBatch {
  /** Sends equal reads once. A member that has written must pass `isOwn`, so that it sees its own rows. */
  read(sql: string, params: readonly Value[], isOwn: boolean): Promise<Result>;
  /** Sends the rows of all members for one table as one statement. Every member gets the returned rows of all. */
  insert(insert: BulkInsert, values: readonly Value[]): Promise<Row[]>;
  send(): void;
  /** Stops sending. Pending and later statements fail with the error of the first call. */
  fail(error: unknown): void;
  failure(): unknown;
}

/** The error of the members of a failed group that did not cause the failure. */
export const GROUP_ABORTED = new Error('another write of the same group failed');

interface Pending {
  send(): void;
  reject(error: unknown): void;
}

interface PendingRows {
  readonly values: Value[];
  readonly returned: Promise<Row[]>;
}

export function createStatementBatch(connection: Connection, preparer: StatementPreparer): StatementBatch {
  let pending: Pending[] = [];
  const reads = new Map<string, Promise<Result>>();
  const inserts = new Map<BulkInsert, PendingRows>();
  let failure: unknown;
  let isScheduled = false;

  const fail = (error: unknown): void => {
    failure ??= error;
  };
  function schedule<T>(run: () => Promise<T>): Promise<T> {
    if (failure !== undefined) throw failure;
    const { promise, resolve, reject } = Promise.withResolvers<T>();
    const failed = (error: unknown): void => {
      fail(error);
      reject(failure);
    };
    pending.push({ send: () => void run().then(resolve, failed), reject });
    if (!isScheduled) setImmediate(send);
    isScheduled = true;
    return promise;
  }
  function send(): void {
    const all = pending;
    pending = [];
    isScheduled = false;
    reads.clear();
    inserts.clear();
    for (const each of all) {
      if (failure === undefined) each.send();
      else each.reject(failure);
    }
  }

  async function insertAll(insert: BulkInsert, values: readonly Value[]): Promise<Row[]> {
    const returned = await connection.insert<Row>(preparer.prepareInsert(insert, values));
    // The skipped row may conflict with one of this same group, and then two members would believe that they own it.
    const isSkipped = insert.conflict === 'skip' && returned.length < values.length / columnCount(insert);
    if (isSkipped) fail(GROUP_ABORTED);
    return returned;
  }

  return {
    read(sql, params, isOwn) {
      const query = preparer.prepare(sql, params);
      if (isOwn) return schedule(() => connection.query(query));
      const key = JSON.stringify([sql, ...params]);
      const read = reads.get(key) ?? schedule(() => connection.query(query));
      reads.set(key, read);
      return read;
    },
    insert(insert, values) {
      refuseNul(values);
      const pendingRows = inserts.get(insert);
      if (pendingRows) {
        for (const value of values) pendingRows.values.push(value);
        return pendingRows.returned;
      }
      const all = [...values];
      const returned = schedule(() => insertAll(insert, all));
      inserts.set(insert, { values: all, returned });
      return returned;
    },
    send,
    fail,
    failure: () => failure,
  };
}
