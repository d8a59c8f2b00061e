import { compareDigits, compareText, createComparator } from './comparator.ts';

const VERSION = /^\d+(?:\.[0-9a-z]+)*(?:-[0-9a-z-]+(?:\.[0-9a-z-]+)*)?$/i;

/** Compares versions of Ruby gems (Gem::Version), such as `1.0.rc1`, which is older than `1.0`. */
export const compareGem = createComparator(parse, (a, b) => {
  for (let index = 0; index < Math.max(a.length, b.length); index++) {
    const order = compareParts(a[index] ?? '0', b[index] ?? '0');
    if (order !== 0) return order;
  }
  return 0;
});

/** Removes the zeros before the first word: `1.0.rc` is the same version as `1.rc`. */
function parse(text: string): readonly string[] | undefined {
  if (!VERSION.test(text)) return undefined;
  const parts = text.replaceAll('-', '.pre.').match(/\d+|[a-z]+/gi) ?? [];
  const word = parts.findIndex((part) => !isNumber(part));
  const end = word < 0 ? parts.length : word;
  const last = parts.slice(0, end).findLastIndex((part) => /[1-9]/.test(part));
  return [...parts.slice(0, last + 1), ...parts.slice(end)];
}

const isNumber = (part: string): boolean => /^\d/.test(part);

/** Words are older than numbers, also than the zero for a missing part. */
function compareParts(a: string, b: string): number {
  if (isNumber(a) !== isNumber(b)) return isNumber(a) ? 1 : -1;
  return isNumber(a) ? compareDigits(a, b) : compareText(a, b);
}
