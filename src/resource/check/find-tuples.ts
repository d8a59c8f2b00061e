import type { Reader, Row, Value } from '../../store/store.ts';

/** A table in which many rows are looked up by their keys. */
export interface TupleLookup {
  readonly table: string;
  /** The columns of the key, with their types. */
  readonly columns: Readonly<Record<string, 'TEXT' | 'BIGINT'>>;
  /** Columns with the same value for all rows. */
  readonly fixed?: readonly string[];
}

/** Rows per statement, so that one prepared statement serves any number. */
const TUPLES = 128;

/** Returns those of `tuples` that the table does not have. */
export async function findMissing<T extends readonly Value[]>(
  db: Reader,
  lookup: TupleLookup,
  fixed: readonly Value[],
  tuples: readonly T[],
): Promise<T[]> {
  const padding = Object.keys(lookup.columns).map(() => null);
  const missing: T[] = [];
  for (let at = 0; at < tuples.length; at += TUPLES) {
    // Tuples that are only padding have no number.
    const params = Array.from({ length: TUPLES }, (_, i) => {
      const tuple = tuples[at + i];
      return tuple ? [i, ...tuple] : [null, ...padding];
    });
    const rows = await db.all<{ at: number }>(statementOf(lookup), ...params.flat(), ...fixed);
    for (const row of rows) missing.push(tuples[at + Number(row.at)] as T);
  }
  return missing;
}

const statements = new WeakMap<TupleLookup, string>();

function statementOf(lookup: TupleLookup): string {
  const text = statements.get(lookup) ?? buildStatement(lookup);
  statements.set(lookup, text);
  return text;
}

function buildStatement({ table, columns, fixed = [] }: TupleLookup): string {
  const names = Object.keys(columns);
  const types = ['BIGINT', ...Object.values(columns)];
  const tuple = (i: number): string =>
    `(${types.map((type, c) => `CAST($${i * types.length + c + 1} AS ${type})`).join(', ')})`;
  const tuples = Array.from({ length: TUPLES }, (_, i) => tuple(i)).join(', ');
  const first = TUPLES * types.length + 1;
  const isSame = [
    ...fixed.map((column, i) => `t.${column} = $${first + i}`),
    ...names.map((column) => `t.${column} = w.${column}`),
  ].join(' AND ');
  // LIMIT keeps PostgreSQL from turning the lookups by key into a join that reads the whole table.
  return `WITH w(at, ${names.join(', ')}) AS (VALUES ${tuples})
    SELECT at FROM w WHERE at IS NOT NULL
      AND NOT EXISTS (SELECT 1 FROM ${table} t WHERE ${isSame} LIMIT 1 OFFSET 0)`;
}

/** Reads all rows of a statement in pages. `next` returns the parameters of the page after a row. */
export async function* pagesOf<R extends Row>(
  db: Reader,
  statement: string,
  first: readonly Value[],
  next: (last: R) => readonly Value[],
): AsyncGenerator<R[]> {
  for (let params = first; ; ) {
    const rows = await db.all<R>(statement, ...params);
    const last = rows.at(-1);
    if (!last) return;
    yield rows;
    params = next(last);
  }
}
