import { DatabaseSync, type StatementSync } from 'node:sqlite';
import { diskFull, refuseNul, unavailable } from '../errors.ts';
import { type Reader, UniqueViolation } from '../store.ts';
import type { Row, Value } from '../value.ts';

/** Each takes a few kilobytes, and lists have very many different texts. */
const MAX_PREPARED = 500;

/** A connection to SQLite with `$1` parameters, the errors of the store, and each statement prepared once. */
export interface Connection extends Reader {
  all<R extends Row>(sql: string, ...params: Value[]): R[];
  get<R extends Row>(sql: string, ...params: Value[]): R | undefined;
  run(sql: string, ...params: Value[]): number;
  inTransaction(): boolean;
  /**
   * Calls `changed` with the key of every row of the table that this connection updates or deletes, before the commit.
   */
  onChange(table: string, keyColumn: string, changed: (key: string) => void): void;
  close(): void;
}

export interface ConnectionOptions {
  readonly readOnly: boolean;
  /** How long a statement waits for the lock of another process. It blocks this whole process meanwhile. */
  readonly blockMs: number;
}

export function connect(path: string, { readOnly, blockMs }: ConnectionOptions): Connection {
  const database = translating(() => new DatabaseSync(path, { readOnly, timeout: blockMs }));
  const statements = new Map<string, Prepared>();

  const prepare = (sql: string): Prepared => {
    let prepared = statements.get(sql);
    if (prepared === undefined) {
      const statement = database.prepare(toSqlite(sql));
      statement.setReturnArrays(true);
      prepared = { statement, columns: statement.columns().map(({ name }) => name) };
      // Evicts the oldest, which is prepared again if it is still in use. That is cheaper than to record every use.
      for (const oldest of statements.size < MAX_PREPARED ? [] : statements.keys().take(1)) statements.delete(oldest);
      statements.set(sql, prepared);
    }
    return prepared;
  };
  // The try blocks are not shared: a function to share them would allocate a closure for every statement.
  return {
    all: <R extends Row>(sql: string, ...params: Value[]) => {
      refuseNul(params);
      try {
        const { statement, columns } = prepare(sql);
        return statement.all(...params).map((values) => rowOf(columns, values as unknown as Value[]) as R);
      } catch (error) {
        throw translateError(error);
      }
    },
    get: <R extends Row>(sql: string, ...params: Value[]) => {
      refuseNul(params);
      try {
        const { statement, columns } = prepare(sql);
        const values = statement.get(...params);
        return values && (rowOf(columns, values as unknown as Value[]) as R);
      } catch (error) {
        throw translateError(error);
      }
    },
    run: (sql, ...params) => {
      refuseNul(params);
      try {
        return Number(prepare(sql).statement.run(...params).changes);
      } catch (error) {
        throw translateError(error);
      }
    },
    binaryCollation: '',
    inTransaction: () => database.isTransaction,
    onChange(table, keyColumn, changed) {
      database.function(`changed_${table}`, (key) => {
        changed(String(key));
        return null;
      });
      for (const change of ['UPDATE', 'DELETE']) {
        database.exec(`CREATE TEMP TRIGGER ${table}_${change} AFTER ${change} ON main.${table}
          BEGIN SELECT changed_${table}(OLD.${keyColumn}); END`);
      }
    },
    close: () => database.close(),
  };
}

interface Prepared {
  readonly statement: StatementSync;
  readonly columns: readonly string[];
}

/**
 * Rows are read as arrays: Node would give each row object its own hidden class, in the space that V8 seldom collects.
 */
function rowOf(columns: readonly string[], values: readonly Value[]): Row {
  const row: Row = {};
  for (let at = 0; at < columns.length; at++) row[columns[at] as string] = values[at] as Value;
  return row;
}

/** Result codes of SQLite: the low byte is the primary code. https://sqlite.org/rescode.html */
const BUSY = 5;
const FULL = 13;
const CONSTRAINT_UNIQUE = new Set([2067, 1555, 2579]);
/** A trigger refused the statement. Only those of a database that was moved do (copy/source.ts). */
const CONSTRAINT_TRIGGER = 1811;
const UNAVAILABLE_CODES: ReadonlyMap<number, string> = new Map([
  [BUSY, 'another process is writing to the database'],
  [6, 'another process is writing to the database'],
  [7, 'the database ran out of memory'],
  [8, 'the database is read-only'],
  [10, 'the database file could not be read or written'],
  [11, 'the database file is damaged'],
  [14, 'the database file cannot be opened'],
  [23, 'access to the database file was denied'],
  [26, 'the database file is not a database'],
]);

function translating<T>(step: () => T): T {
  try {
    return step();
  } catch (error) {
    throw translateError(error);
  }
}

/**
 * Turns an error of SQLite into one of the store. Any other error, such as an invalid statement, is returned as it is:
 * it is a bug and is logged.
 */
function translateError(error: unknown): unknown {
  const code = resultCode(error);
  if (code === undefined) return error;
  if (CONSTRAINT_UNIQUE.has(code)) return new UniqueViolation(tableIn((error as Error).message), error);
  if (code === CONSTRAINT_TRIGGER) return unavailable('the server moves to another database; try again later', error);
  const primaryCode = code & 0xff;
  if (primaryCode === FULL) return diskFull(error);
  const description = UNAVAILABLE_CODES.get(primaryCode);
  return description === undefined ? error : unavailable(description, error);
}

function resultCode(error: unknown): number | undefined {
  if (error instanceof Error && 'errcode' in error && typeof error.errcode === 'number') return error.errcode;
  return undefined;
}

/** Returns `natural_key` for `UNIQUE constraint failed: natural_key.kind, natural_key.key`. */
const tableIn = (message: string): string => /failed: (\w+)\./.exec(message)?.[1] ?? 'unknown';

/** Whether a statement failed because another process had the lock. */
export const isBusy = (error: unknown): boolean =>
  error instanceof Error && ((resultCode(error.cause) ?? 0) & 0xff) === BUSY;

/**
 * Translates a statement.
 * - OR FAIL: the transaction of a failed statement is rolled back anyway (transaction-guard.ts). So a statement need
 *   not be able to undo itself, for which SQLite would copy every page that it changes.
 * - `$1` becomes `?` where each parameter occurs once and in order, and `?1` otherwise. Node looks up the name of each
 *   parameter that it binds, for which SQLite walks the list of names: that takes quadratic time in a long statement.
 */
function toSqlite(sql: string): string {
  const numbers = [...sql.matchAll(/\$(\d+)/g)].map(([, number]) => Number(number));
  const isInOrder = numbers.every((number, at) => number === at + 1);
  return sql.replace(/\$(\d+)/g, isInOrder ? '?' : '?$1').replace(/^(INSERT|UPDATE)\b/, '$1 OR FAIL');
}
