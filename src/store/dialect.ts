/** All that differs between the two databases in the text of a migration. */
export interface Dialect {
  /** Text that compares by its bytes. */
  readonly text: string;
  readonly integer: string;
  readonly blob: string;
  /** Written and read as text; `column ->> 'name'` works on both. */
  readonly json: string;
  /** Column type of a key that the database counts up and never gives out twice. */
  readonly generatedId: string;
  /** Ends a CREATE TABLE. */
  readonly table: string;
  /** Ends a CREATE TABLE whose rows are all key: they live in the index of the key, with no second copy. */
  readonly keyOnlyTable: string;
  /** Run first in a transaction that must be alone. In SQLite every writer is. */
  readonly exclusive: string;
}

export const sqliteDialect: Dialect = {
  text: 'TEXT',
  integer: 'INTEGER',
  blob: 'BLOB',
  json: 'TEXT',
  generatedId: 'INTEGER PRIMARY KEY AUTOINCREMENT',
  table: 'STRICT',
  keyOnlyTable: 'STRICT, WITHOUT ROWID',
  exclusive: 'SELECT 1',
};

export const postgresDialect: Dialect = {
  text: 'TEXT COLLATE "C"',
  integer: 'BIGINT',
  blob: 'BYTEA',
  json: 'JSONB',
  generatedId: 'BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY',
  table: '',
  keyOnlyTable: '',
  // Any number will do, if all servers use the same.
  exclusive: 'SELECT pg_advisory_xact_lock(7424273)',
};
