import type { Row, Value } from './value.ts';

/**
 * An INSERT of any number of rows into one table. It is a description and not a statement, because the two databases
 * have different fast ways to insert many rows.
 */
export interface BulkInsert {
  readonly into: string;
  readonly columns: Readonly<Record<string, ColumnType>>;
  /**
   * What to do with a row whose key exists. By default the transaction fails.
   * - `skip` omits the new row.
   * - `sum` adds the value of a column to that of the existing row.
   * - `replace` overwrites the value of a column. If several new rows have the same key, the value of any one of them
   *   is stored.
   *
   * With `sum` and `replace`, `columns` has the columns of the key and this one, and no others.
   */
  readonly conflict?:
    | 'skip'
    | { readonly key: readonly string[]; readonly sum: string }
    | { readonly key: readonly string[]; readonly replace: string };
  /** Columns to return for each row that was inserted or changed. */
  readonly returning?: readonly string[];
}

export type ColumnType = 'text' | 'integer' | 'blob' | 'json';

export const columnCount = ({ columns }: BulkInsert): number => Object.keys(columns).length;

/** Returns the ON CONFLICT and RETURNING clauses, which are the same on both databases. */
export function conflictClause({ into, conflict, returning }: BulkInsert): string {
  const parts: string[] = [];
  if (conflict === 'skip') parts.push('ON CONFLICT DO NOTHING');
  else if (conflict) {
    const change =
      'sum' in conflict
        ? `${conflict.sum} = ${into}.${conflict.sum} + excluded.${conflict.sum}`
        : `${conflict.replace} = excluded.${conflict.replace}`;
    parts.push(`ON CONFLICT (${conflict.key.join(', ')}) DO UPDATE SET ${change}`);
  }
  if (returning) parts.push(`RETURNING ${returning.join(', ')}`);
  return parts.join(' ');
}

/**
 * Rows per statement. A few sizes suffice, so that a few prepared statements serve any number of rows. Large ones
 * matter with ON CONFLICT DO UPDATE: SQLite journals each page that such a statement changes, once per statement.
 */
const BATCH_ROWS = [128, 16, 4, 1];

const statements = new WeakMap<BulkInsert, Map<number, string>>();

/**
 * Inserts rows by statements with one parameter per value. `values` has the values of all rows, one row after the
 * other.
 */
export function insertValues<R extends Row>(
  insert: BulkInsert,
  values: readonly Value[],
  connection: {
    all(text: string, ...params: Value[]): R[];
    run(text: string, ...params: Value[]): unknown;
  },
): R[] {
  const returned: R[] = [];
  const width = columnCount(insert);
  let at = 0;
  for (const rows of BATCH_ROWS) {
    const size = rows * width;
    for (; at + size <= values.length; at += size) {
      const text = statementFor(insert, rows);
      const params = values.slice(at, at + size);
      if (insert.returning) returned.push(...connection.all(text, ...params));
      else connection.run(text, ...params);
    }
  }
  return returned;
}

function statementFor(insert: BulkInsert, rows: number): string {
  const byRows = statements.get(insert) ?? new Map<number, string>();
  statements.set(insert, byRows);
  const text = byRows.get(rows) ?? buildStatement(insert, rows);
  byRows.set(rows, text);
  return text;
}

function buildStatement(insert: BulkInsert, rows: number): string {
  const names = Object.keys(insert.columns);
  const tuples = Array.from({ length: rows }, (_, row) => {
    const placeholders = names.map((_name, column) => `$${row * names.length + column + 1}`);
    return `(${placeholders.join(', ')})`;
  });
  return `INSERT INTO ${insert.into} (${names.join(', ')}) VALUES ${tuples.join(', ')} ${conflictClause(insert)}`;
}
