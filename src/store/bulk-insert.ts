import type { Row, Value } from './store.ts';

/** Rows of one shape for one table. Told rather than written out, because each database has its own best way to take many. */
export interface Insertion {
  readonly into: string;
  readonly columns: Readonly<Record<string, ColumnType>>;
  /**
   * What becomes of a row whose key is there already. Nothing said: the transaction fails. `skip`: the new row is left out.
   * `sum`: the old row stays, with the new value of that column added to its own.
   */
  readonly conflict?: 'skip' | { readonly key: readonly string[]; readonly sum: string };
  /** What is answered of each row that was inserted or added to. */
  readonly returning?: readonly string[];
}

export type ColumnType = 'text' | 'integer' | 'blob' | 'json';

/** How many values make a row. */
export const widthOf = ({ columns }: Insertion): number => Object.keys(columns).length;

/** What follows the new rows, on both databases. */
export function ending({ into, conflict, returning }: Insertion): string {
  const parts: string[] = [];
  if (conflict === 'skip') parts.push('ON CONFLICT DO NOTHING');
  else if (conflict) {
    const { key, sum } = conflict;
    parts.push(`ON CONFLICT (${key.join(', ')}) DO UPDATE SET ${sum} = ${into}.${sum} + excluded.${sum}`);
  }
  if (returning) parts.push(`RETURNING ${returning.join(', ')}`);
  return parts.join(' ');
}

/**
 * A few lengths, so that a few prepared statements serve any number of rows. One with ON CONFLICT DO UPDATE saves each page
 * that it changes in SQLite, in case it fails halfway: many short ones would write the same page many times.
 */
const LENGTHS = [128, 16, 4, 1];

const texts = new WeakMap<Insertion, Map<number, string>>();

/** Inserts rows by statements with a parameter for each value. `values` are those of all rows, one after the other. */
export function insertValues<R extends Row>(
  insertion: Insertion,
  values: readonly Value[],
  on: {
    all(text: string, ...params: Value[]): R[];
    run(text: string, ...params: Value[]): unknown;
  },
): R[] {
  const returned: R[] = [];
  const width = widthOf(insertion);
  let at = 0;
  for (const length of LENGTHS) {
    const size = length * width;
    for (; at + size <= values.length; at += size) {
      const text = valuesText(insertion, length);
      const params = values.slice(at, at + size);
      if (insertion.returning) returned.push(...on.all(text, ...params));
      else on.run(text, ...params);
    }
  }
  return returned;
}

function valuesText(insertion: Insertion, rows: number): string {
  const known = texts.get(insertion) ?? new Map<number, string>();
  texts.set(insertion, known);
  const text = known.get(rows) ?? buildValues(insertion, rows);
  known.set(rows, text);
  return text;
}

function buildValues(insertion: Insertion, rows: number): string {
  const names = Object.keys(insertion.columns);
  const slots = Array.from({ length: rows }, (_, row) => {
    const own = names.map((_name, column) => `$${row * names.length + column + 1}`);
    return `(${own.join(', ')})`;
  });
  return `INSERT INTO ${insertion.into} (${names.join(', ')}) VALUES ${slots.join(', ')} ${ending(insertion)}`;
}
