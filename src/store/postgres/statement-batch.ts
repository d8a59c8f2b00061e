import type pg from 'pg';
import { type BulkInsert, columnCount } from '../bulk-insert.ts';
import { refuseNul } from '../errors.ts';
import type { Row, Value } from '../store.ts';
import type { Connection, StatementPreparer } from './connection.ts';

type Result = pg.QueryResult<Row>;

/** Collects the statements that the members of a group issue in one turn of the event loop, and sends them together. */
export interface StatementBatch {
  /** Equal reads are sent once, unless `isOwn`: a member must see what it has just written. */
  read(sql: string, params: readonly Value[], isOwn: boolean): Promise<Result>;
  /** Rows for one table are sent as one statement. Every member gets what it returns for all of them. */
  insert(insert: BulkInsert, values: readonly Value[]): Promise<Row[]>;
  send(): void;
  /** Sends nothing from now on; later calls reject with the first error that was given here. */
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

export function createStatementBatch(connection: Connection, { statement, rows }: StatementPreparer): StatementBatch {
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
    const returned = await connection.insert<Row>(rows(insert, values));
    // The skipped row may conflict with one of this same group, and then two members would believe that they own it.
    const isSkipped = insert.conflict === 'skip' && returned.length < values.length / columnCount(insert);
    if (isSkipped) fail(GROUP_ABORTED);
    return returned;
  }

  return {
    read(sql, params, isOwn) {
      const query = statement(sql, params);
      if (isOwn) return schedule(() => connection.query(query));
      const key = JSON.stringify([sql, ...params]);
      const read = reads.get(key) ?? schedule(() => connection.query(query));
      reads.set(key, read);
      return read;
    },
    insert(insert, values) {
      refuseNul(values);
      const known = inserts.get(insert);
      if (known) {
        for (const value of values) known.values.push(value);
        return known.returned;
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
