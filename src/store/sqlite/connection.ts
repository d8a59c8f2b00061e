import { DatabaseSync, type StatementSync } from 'node:sqlite';
import { refuseNul, unavailable } from '../errors.ts';
import { type Reader, type Row, UniqueViolation, type Value } from '../store.ts';

/** Each holds on to a few kilobytes; texts of lists come in very many shapes. */
const MAX_PREPARED = 500;

/** One SQLite connection that speaks the store's language: `$1` parameters, typed errors, statements prepared once. */
export interface Connection extends Reader {
  all<R extends Row>(sql: string, ...params: Value[]): R[];
  get<R extends Row>(sql: string, ...params: Value[]): R | undefined;
  run(sql: string, ...params: Value[]): number;
  inTransaction(): boolean;
  /** Tells the key of every row of this table that this connection changes or deletes, before that is committed. */
  onChange(table: string, keyColumn: string, changed: (key: string) => void): void;
  close(): void;
}

export interface ConnectionOptions {
  readonly readOnly: boolean;
  /** How long a statement blocks, and with it the whole process, while another process holds the lock it needs. */
  readonly blockMs: number;
}

export function connect(path: string, { readOnly, blockMs }: ConnectionOptions): Connection {
  const database = attempt(() => new DatabaseSync(path, { readOnly, timeout: blockMs }));
  const statements = new Map<string, Prepared>();

  const prepare = (sql: string): Prepared => {
    let prepared = statements.get(sql);
    if (prepared === undefined) {
      const statement = database.prepare(inSqlite(sql));
      statement.setReturnArrays(true);
      prepared = { statement, columns: statement.columns().map(({ name }) => name) };
      // The oldest goes, and is prepared again if it is still in use: cheaper than to note every use.
      for (const oldest of statements.size < MAX_PREPARED ? [] : statements.keys().take(1)) statements.delete(oldest);
      statements.set(sql, prepared);
    }
    return prepared;
  };
  // Written out three times: a function for the step would be made anew for every statement.
  return {
    all: <R extends Row>(sql: string, ...params: Value[]) => {
      refuseNul(params);
      try {
        const { statement, columns } = prepare(sql);
        return statement.all(...params).map((values) => rowOf(columns, values as unknown as Value[]) as R);
      } catch (error) {
        throw translate(error);
      }
    },
    get: <R extends Row>(sql: string, ...params: Value[]) => {
      refuseNul(params);
      try {
        const { statement, columns } = prepare(sql);
        const values = statement.get(...params);
        return values && (rowOf(columns, values as unknown as Value[]) as R);
      } catch (error) {
        throw translate(error);
      }
    },
    run: (sql, ...params) => {
      refuseNul(params);
      try {
        return Number(prepare(sql).statement.run(...params).changes);
      } catch (error) {
        throw translate(error);
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

/** Rows come as arrays: Node would give each row object a hidden class of its own, in the space that V8 seldom collects. */
function rowOf(columns: readonly string[], values: readonly Value[]): Row {
  const row: Row = {};
  for (let at = 0; at < columns.length; at++) row[columns[at] as string] = values[at] as Value;
  return row;
}

/** Result codes of SQLite: the low byte is the kind of error, the rest its variant. https://sqlite.org/rescode.html */
const BUSY = 5;
const CONSTRAINT_UNIQUE = new Set([2067, 1555, 2579]);
const TROUBLE: ReadonlyMap<number, string> = new Map([
  [BUSY, 'another process is writing to the database'],
  [6, 'another process is writing to the database'],
  [7, 'the database ran out of memory'],
  [8, 'the database is read-only'],
  [10, 'the database could not read or write its file'],
  [11, 'the database file is damaged'],
  [13, 'the disk is full'],
  [14, 'the database file cannot be opened'],
  [23, 'the database file may not be used'],
  [26, 'the database file is not a database'],
]);

function attempt<T>(step: () => T): T {
  try {
    return step();
  } catch (error) {
    throw translate(error);
  }
}

/** What is not the database's own trouble, such as a mistake in a statement, stays as it is: a bug, to be logged. */
function translate(error: unknown): unknown {
  const code = resultCode(error);
  if (code === undefined) return error;
  if (CONSTRAINT_UNIQUE.has(code)) return new UniqueViolation(tableIn((error as Error).message), error);
  const trouble = TROUBLE.get(code & 0xff);
  return trouble === undefined ? error : unavailable(trouble, error);
}

function resultCode(error: unknown): number | undefined {
  if (error instanceof Error && 'errcode' in error && typeof error.errcode === 'number') return error.errcode;
  return undefined;
}

/** `natural_key` of `UNIQUE constraint failed: natural_key.kind, natural_key.key`. */
const tableIn = (message: string): string => /failed: (\w+)\./.exec(message)?.[1] ?? 'unknown';

/** Whether an error says that another process held the lock. */
export const isBusy = (error: unknown): boolean =>
  error instanceof Error && ((resultCode(error.cause) ?? 0) & 0xff) === BUSY;

/**
 * After a statement that failed, its transaction is undone anyway (transaction-guard.ts). So inserts and updates need not undo
 * themselves, for which SQLite would copy every page that they change.
 *
 * Parameters by number, or by place where each comes once and in order. Node asks for the name of each that it binds, for
 * which SQLite walks the list of names: numbers in a long statement cost quadratic time.
 */
function inSqlite(sql: string): string {
  const numbers = [...sql.matchAll(/\$(\d+)/g)].map(([, number]) => Number(number));
  const isInOrder = numbers.every((number, at) => number === at + 1);
  return sql.replace(/\$(\d+)/g, isInOrder ? '?' : '?$1').replace(/^(INSERT|UPDATE)\b/, '$1 OR FAIL');
}
