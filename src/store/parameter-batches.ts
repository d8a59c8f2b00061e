const BATCH = 50;

/** Builds one part of a statement for each value of a batch, with the values as parameters from `$first` on. */
export const batchPlaceholders = (first: number, part = (slot: string): string => slot): string =>
  Array.from({ length: BATCH }, (_, i) => part(`$${i + first}`)).join(', ');

/** Cut into batches of one length, the last value repeated, so that one prepared statement serves any number of values. */
export function* parameterBatches(values: readonly string[]): Generator<string[]> {
  const last = values.at(-1);
  if (last === undefined) return;
  for (let at = 0; at < values.length; at += BATCH) {
    yield Array.from({ length: BATCH }, (_, i) => values[at + i] ?? last);
  }
}
