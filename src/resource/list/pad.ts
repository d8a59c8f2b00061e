/** Filled up with its last value to a power of two, so that a few statement texts serve any number of values. */
export function padToPowerOfTwo<T>(values: readonly T[]): T[] {
  const last = values.at(-1);
  if (last === undefined) return [];
  const length = 2 ** Math.ceil(Math.log2(values.length));
  return Array.from({ length }, (_, i) => values[i] ?? last);
}
