import type { Insertion } from './bulk-insert.ts';
import type { Memory } from './row-cache.ts';

/** What a column can hold on both databases. Timestamps are integer milliseconds. */
export type Value = string | number | Uint8Array | null;
export type Row = Record<string, Value>;

/** SQLite answers at once, PostgreSQL later; `await` takes both and costs nothing extra for the former. */
export type Maybe<T> = T | Promise<T>;

/**
 * Statements are constant texts with `$1`-style parameters, understood by both databases.
 * Each text is prepared once per connection, so never build one from request data. Those who ask the same at the same time
 * may share an answer, so a read has no effect, and nobody changes a row that they were given.
 */
export interface Reader {
  all<R extends Row>(sql: string, ...params: Value[]): Maybe<R[]>;
  get<R extends Row>(sql: string, ...params: Value[]): Maybe<R | undefined>;
  /** Appended to a text expression that is no column, to make it compare bytewise as all text columns do. */
  readonly bytewise: string;
  /**
   * Where a loop over a few sorted runs of rows ends each run as soon as no further row of it can be among the first ones:
   * the table that has the elements of a JSON array.
   */
  readonly loopOver?: string;
  /** Where the database can tell what has changed: what was made of rows that were read before. */
  readonly memory?: Memory;
}

/**
 * A transaction. Everything written through it commits together or not at all. A statement that fails ends it, as
 * PostgreSQL has it: every later statement fails too, and so does the write, even if `work` swallows the error.
 */
export interface Transaction extends Reader {
  /** Runs a statement and answers how many rows it changed. */
  run(sql: string, ...params: Value[]): Maybe<number>;
  /** Inserts any number of rows, whose values come one after the other, and answers what the insertion returns of them. */
  insert<R extends Row>(insertion: Insertion, values: readonly Value[]): Maybe<R[]>;
  /** Runs a statement that nothing waits for but the commit, which fails with it. */
  post(sql: string, ...params: Value[]): void;
  /** The same for rows. */
  postRows(insertion: Insertion, values: readonly Value[]): void;
  /**
   * Appended to a SELECT to hold its rows until commit; empty where writers are serial anyway. `free` passes over rows
   * that others hold instead of waiting for them.
   */
  readonly lock: { readonly share: string; readonly update: string; readonly free: string };
}

/** A row with the same unique key is there already. It ends the transaction, as every failed statement does. */
export class UniqueViolation extends Error {
  override readonly name = 'UniqueViolation';
  readonly table: string;

  constructor(table: string, cause: unknown) {
    super(`a row with this key is already in ${table}`, { cause });
    this.table = table;
  }
}

export interface WriteOptions {
  /** Says that the work adds rows and changes none that others may change, so that it may share its transaction. */
  readonly adds?: boolean | undefined;
}

export interface Store {
  readonly reader: Reader;
  /**
   * Runs `work` in a transaction and answers after the commit is durable. `work` may run again after a
   * conflict with another server, so it must have no effect but through its transaction, which it also reads by.
   */
  write<T>(work: (tx: Transaction) => Maybe<T>, options?: WriteOptions): Promise<T>;
  /** A cheap query that fails when the database cannot be reached. */
  ping(): Promise<void>;
  close(): Promise<void>;
}
