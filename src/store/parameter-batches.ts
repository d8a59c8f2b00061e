const BATCH = 50;

/** Returns the placeholders of one batch, numbered from `$first` on. `part` says what to write for each. */
export const batchPlaceholders = (first: number, part = (placeholder: string): string => placeholder): string =>
  Array.from({ length: BATCH }, (_, i) => part(`$${i + first}`)).join(', ');

/**
 * Splits values into batches of one length, so that one prepared statement serves any number. Repeats the last value.
 */
export function* parameterBatches(values: readonly string[]): Generator<string[]> {
  const last = values.at(-1);
  if (last === undefined) return;
  for (let at = 0; at < values.length; at += BATCH) {
    yield Array.from({ length: BATCH }, (_, i) => values[at + i] ?? last);
  }
}
