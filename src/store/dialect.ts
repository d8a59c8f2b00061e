/** Everything that differs between the two databases in the text of a migration. */
export interface Dialect {
  /** Text that compares bytewise. */
  readonly text: string;
  readonly integer: string;
  readonly blob: string;
  /** Written and read as text. `column ->> 'name'` works on both databases. */
  readonly json: string;
  /** The type of a primary key whose values the database generates in ascending order and never reuses. */
  readonly generatedId: string;
  /** The end of a CREATE TABLE. */
  readonly tableOptions: string;
  /** The end of a CREATE TABLE whose rows are stored in the index of the primary key. For small rows only. */
  readonly indexOrganized: string;
  /** The first statement of a migration. It makes migrations of other servers wait. SQLite allows one writer anyway. */
  readonly migrationLock: string;
  /** Run before the statements of a migration, in its transaction. */
  readonly migrationSettings: readonly string[];
}

export const sqliteDialect: Dialect = {
  text: 'TEXT',
  integer: 'INTEGER',
  blob: 'BLOB',
  json: 'TEXT',
  generatedId: 'INTEGER PRIMARY KEY AUTOINCREMENT',
  tableOptions: 'STRICT',
  indexOrganized: 'STRICT, WITHOUT ROWID',
  migrationLock: 'SELECT 1',
  migrationSettings: [],
};

export const postgresDialect: Dialect = {
  text: 'TEXT COLLATE "C"',
  integer: 'BIGINT',
  blob: 'BYTEA',
  json: 'JSONB',
  generatedId: 'BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY',
  tableOptions: '',
  indexOrganized: '',
  // The number is arbitrary, but all servers must use the same.
  migrationLock: 'SELECT pg_advisory_xact_lock(7424273)',
  // While a statement waits for the lock of a table, the statements of running servers wait behind it.
  migrationSettings: ["SET LOCAL lock_timeout = '1s'"],
};
