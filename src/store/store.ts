import type { MaybePromise } from '../base/maybe-promise.ts';
import type { Quotas } from '../limits/quotas.ts';
import type { BulkInsert } from './bulk-insert.ts';
import type { ListingIndexes } from './listing-indexes.ts';
import type { RowCache } from './row-cache.ts';
import type { Row, Value } from './value.ts';

export type { Row, Value };

/**
 * Runs SELECT statements. A statement is a constant text with `$1`-style parameters that both databases understand.
 * Each text is prepared once per connection, so request data must never become part of it. Concurrent equal reads may
 * share one result, so callers must not change the rows that they get.
 */
export interface Reader {
  all<R extends Row>(sql: string, ...params: Value[]): MaybePromise<R[]>;
  get<R extends Row>(sql: string, ...params: Value[]): MaybePromise<R | undefined>;
  /** Appended to a text expression that is not a column, so that it compares bytewise as all text columns do. */
  readonly binaryCollation: string;
  /**
   * The table function that returns the elements of a JSON array. Only set on a database whose nested loop stops
   * reading a sorted run of rows as soon as none of the rest can be on the page (resource/list/list-sql.ts).
   */
  readonly jsonElements?: string;
  /** Objects made from rows, on a database that reports which rows have changed. */
  readonly rowCache?: RowCache;
  /** Which parts of the listing indexes are complete. Absent while the database is being opened. */
  readonly listingIndexes?: ListingIndexes;
}

/**
 * A transaction: everything written through it commits together or not at all. The first statement that fails ends it,
 * as in PostgreSQL: later statements fail too, and so does the write, even if `work` catches the error.
 */
export interface Transaction extends Reader {
  /** Reads that lock their rows against changes until the commit. Others can lock them in the same way. */
  readonly forShare: Reader;
  /** Reads that lock their rows until the commit, for changing them. */
  readonly forUpdate: Reader;
  /** The same, but omits the rows that another transaction has locked. */
  readonly forUpdateSkipLocked: Reader;
  /** Whether no other transaction can write concurrently, so that rows cannot change between a read and the commit. */
  readonly isOnlyWriter: boolean;
  /** Whether other writes share the transaction, so that reads see their rows too. If this one fails, it runs again alone. */
  readonly isShared: boolean;
  /** The quotas that hold for what is written. Absent for the work of the server itself, which has none. */
  readonly quotas?: Quotas | undefined;
  /** Inserts rows, whose values follow one another in `values`, and returns the columns of `insert.returning`. */
  insert<R extends Row>(insert: BulkInsert, values: readonly Value[]): MaybePromise<R[]>;
  /** The same, for a caller that does not wait for the result. If it fails, the commit fails. */
  insertUnawaited(insert: BulkInsert, values: readonly Value[]): void;
  /** Runs any other statement and returns how many rows it changed. */
  run(sql: string, ...params: Value[]): MaybePromise<number>;
  /** The same, for a caller that does not wait for the result. If it fails, the commit fails. */
  runUnawaited(sql: string, ...params: Value[]): void;
  /** Runs an UPDATE or DELETE and returns the rows of its RETURNING clause. */
  runReturning<R extends Row>(sql: string, ...params: Value[]): MaybePromise<R[]>;
}

/** A row with the same unique key exists. Like every failed statement, it ends the transaction. */
export class UniqueViolation extends Error {
  override readonly name = 'UniqueViolation';
  readonly table: string;

  constructor(table: string, cause: unknown) {
    super(`a row with this key is already in ${table}`, { cause });
    this.table = table;
  }
}

export interface WriteOptions {
  /**
   * The work reads and calls `insert`, and normally nothing else, so it may share a transaction with other such work.
   * If it does call another write method, it is rolled back and runs again in a transaction of its own.
   */
  readonly appendOnly?: boolean | undefined;
}

export interface Store {
  readonly reader: Reader;
  /**
   * Runs `work` in a transaction and returns after the commit is durable. `work` may run again after a conflict with
   * another transaction, so it must have no effect except through `tx`, and must read through `tx` too.
   */
  write<T>(work: (tx: Transaction) => MaybePromise<T>, options?: WriteOptions): Promise<T>;
  /**
   * Runs `work` with a reader that sees the database as it is now, whatever is written meanwhile. The reader has a
   * connection of its own. A long snapshot makes the database keep old rows, so it is for maintenance only.
   */
  snapshot<T>(work: (reader: Reader) => Promise<T>): Promise<T>;
  /** Runs a cheap query that fails when the database cannot be reached. */
  ping(): Promise<void>;
  /** The bytes of the database on disk. */
  size(): Promise<number>;
  /** The connections of this process to a database server. Absent for a database without a server. */
  connections?(): ConnectionCounts;
  close(): Promise<void>;
}

export interface ConnectionCounts {
  readonly used: number;
  readonly idle: number;
  /** Statements and transactions that wait for a connection. */
  readonly waiting: number;
}
