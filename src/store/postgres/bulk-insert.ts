import { type ColumnType, ending, type Insertion } from '../bulk-insert.ts';
import type { Value } from '../store.ts';

const TYPES: Readonly<Record<ColumnType, string>> = { text: 'text', integer: 'bigint', blob: 'bytea', json: 'jsonb' };

/** Enough that a statement costs next to nothing beside its rows, and little enough to be held as one text. */
const ROWS_PER_STATEMENT = 5_000;

const texts = new WeakMap<Insertion, string>();

/** One text for any number of rows: each column comes as an array. */
export function insertText(insertion: Insertion): string {
  const text = texts.get(insertion) ?? build(insertion);
  texts.set(insertion, text);
  return text;
}

function build(insertion: Insertion): string {
  const { into, columns, conflict } = insertion;
  const names = Object.keys(columns);
  const arrays = Object.values(columns).map((type, at) => `$${at + 1}::${TYPES[type]}[]`);
  const rows = `unnest(${arrays.join(', ')}) AS new (${names.join(', ')})`;
  const found = typeof conflict === 'object' ? summed(names, rows, conflict) : `SELECT * FROM ${rows}`;
  return `INSERT INTO ${into} (${names.join(', ')}) ${found} ${ending(insertion)}`;
}

/** A statement may add to a row once only. All do so in one order, so that two do not wait for each other. */
function summed(names: readonly string[], rows: string, { key, sum }: { key: readonly string[]; sum: string }): string {
  const selected = names.map((name) => (name === sum ? `sum(${name})::bigint` : name));
  const order = key.map((name) => `${name} COLLATE "C"`);
  return `SELECT ${selected.join(', ')} FROM ${rows} GROUP BY ${key.join(', ')} ORDER BY ${order.join(', ')}`;
}

/** The columns of rows whose values come one after the other, a statement's worth at a time. */
export function* inColumns(values: readonly Value[], width: number): Generator<string[]> {
  const size = ROWS_PER_STATEMENT * width;
  for (let from = 0; from < values.length; from += size) {
    const until = Math.min(from + size, values.length);
    yield Array.from({ length: width }, (_, column) => {
      const own: string[] = [];
      for (let at = from + column; at < until; at += width) own.push(element(values[at] as Value));
      return `{${own.join(',')}}`;
    });
  }
}

/** As https://www.postgresql.org/docs/current/arrays.html#ARRAYS-IO has it. The driver would search each text twice. */
function element(value: Value): string {
  if (value === null) return 'NULL';
  if (typeof value === 'number') return String(value);
  if (typeof value === 'string') return `"${SPECIAL.test(value) ? value.replaceAll(/["\\]/g, '\\$&') : value}"`;
  return `\\\\x${Buffer.from(value.buffer, value.byteOffset, value.byteLength).toString('hex')}`;
}

const SPECIAL = /["\\]/;
