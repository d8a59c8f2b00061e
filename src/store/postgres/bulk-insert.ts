import { type BulkInsert, type ColumnType, conflictClause } from '../bulk-insert.ts';
import type { Value } from '../value.ts';

const TYPES: Readonly<Record<ColumnType, string>> = { text: 'text', integer: 'bigint', blob: 'bytea', json: 'jsonb' };

/** Enough rows that the cost of the statement itself does not matter, and few enough for one text in memory. */
const ROWS_PER_STATEMENT = 5_000;

const statements = new WeakMap<BulkInsert, string>();

/** Returns one statement for any number of rows: each column is an array parameter. */
export function insertText(insert: BulkInsert): string {
  const text = statements.get(insert) ?? buildStatement(insert);
  statements.set(insert, text);
  return text;
}

function buildStatement(insert: BulkInsert): string {
  const { into, columns, conflict } = insert;
  const names = Object.keys(columns);
  const arrays = Object.values(columns).map((type, at) => `$${at + 1}::${TYPES[type]}[]`);
  const rows = `unnest(${arrays.join(', ')}) AS new (${names.join(', ')})`;
  const selected = typeof conflict === 'object' ? mergedByKey(names, rows, conflict) : `SELECT * FROM ${rows}`;
  return `INSERT INTO ${into} (${names.join(', ')}) ${selected} ${conflictClause(insert)}`;
}

/**
 * Selects one row per key, because ON CONFLICT DO UPDATE refuses to change a row twice. The rows are sorted, so that
 * two transactions lock rows in the same order and cannot deadlock.
 */
function mergedByKey(
  names: readonly string[],
  rows: string,
  conflict: Exclude<NonNullable<BulkInsert['conflict']>, 'skip'>,
): string {
  const { key } = conflict;
  const merged = (name: string): string => {
    if ('sum' in conflict) return name === conflict.sum ? `sum(${name})::bigint` : name;
    return name === conflict.replace ? `max(${name})` : name;
  };
  const order = key.map((name) => `${name} COLLATE "C"`);
  return `SELECT ${names.map(merged).join(', ')} FROM ${rows} GROUP BY ${key.join(', ')} ORDER BY ${order.join(', ')}`;
}

/** Turns rows, whose values follow one another, into one array literal per column. Yields once per statement. */
export function* toColumnArrays(values: readonly Value[], width: number): Generator<string[]> {
  const size = ROWS_PER_STATEMENT * width;
  for (let from = 0; from < values.length; from += size) {
    const until = Math.min(from + size, values.length);
    yield Array.from({ length: width }, (_, column) => {
      const elements: string[] = [];
      for (let at = from + column; at < until; at += width) elements.push(toElement(values[at] as Value));
      return `{${elements.join(',')}}`;
    });
  }
}

/**
 * Writes an element of an array literal, https://www.postgresql.org/docs/current/arrays.html#ARRAYS-IO. The driver
 * could do it, but it scans each text twice.
 */
function toElement(value: Value): string {
  if (value === null) return 'NULL';
  if (typeof value === 'number') return String(value);
  if (typeof value === 'string') return `"${SPECIAL.test(value) ? value.replaceAll(/["\\]/g, '\\$&') : value}"`;
  return `\\\\x${Buffer.from(value.buffer, value.byteOffset, value.byteLength).toString('hex')}`;
}

const SPECIAL = /["\\]/;
