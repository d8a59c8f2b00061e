import type { Maybe, Value } from '../store/store.ts';
import { together } from '../store/together.ts';

/**
 * A few lengths, so that a few prepared statements serve any number of rows. One with ON CONFLICT DO UPDATE saves each page
 * that it changes in SQLite, in case it fails halfway: many short ones would write the same page many times.
 */
const LENGTHS = [128, 16, 4, 1];

const statements = new Map<string, string>();

/** An INSERT up to its VALUES, the number of its columns, and what follows the values. */
export interface Insertion {
  readonly into: string;
  readonly columns: number;
  readonly after?: string;
}

/** Inserts many rows, many at a time. `values` are those of all rows, one after the other. */
export async function insertRows(
  insertion: Insertion,
  values: readonly Value[],
  run: (text: string, params: Value[]) => Maybe<unknown>,
): Promise<void> {
  const running: Maybe<unknown>[] = [];
  let at = 0;
  for (const length of LENGTHS) {
    const size = length * insertion.columns;
    for (; at + size <= values.length; at += size) {
      running.push(run(statement(insertion, length), values.slice(at, at + size)));
    }
  }
  await together(...running);
}

function statement({ into, columns, after = '' }: Insertion, rows: number): string {
  const key = `${into} ${rows}`;
  const found = statements.get(key) ?? `${into} VALUES ${slots(rows, columns)} ${after}`;
  statements.set(key, found);
  return found;
}

const slots = (rows: number, columns: number): string =>
  Array.from({ length: rows }, (_, row) => {
    const own = Array.from({ length: columns }, (_, column) => `$${row * columns + column + 1}`);
    return `(${own.join(', ')})`;
  }).join(', ');
