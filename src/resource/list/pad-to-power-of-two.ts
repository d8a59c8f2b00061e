/** Repeats the last value until the length is a power of two, so that a few prepared statements serve any length. */
export function padToPowerOfTwo<T>(values: readonly T[]): T[] {
  const last = values.at(-1);
  if (last === undefined) return [];
  const length = 2 ** Math.ceil(Math.log2(values.length));
  return Array.from({ length }, (_, i) => values[i] ?? last);
}
