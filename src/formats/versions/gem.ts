import { compareDigits, compareText, ordered } from './order.ts';

const VERSION = /^\d+(?:\.[0-9a-z]+)*(?:-[0-9a-z-]+(?:\.[0-9a-z-]+)*)?$/i;

/** Versions of Ruby gems (Gem::Version): numbers and words of any count, where `1.0.rc1` is older than `1.0`. */
export const compareGem = ordered(parse, (a, b) => {
  for (let at = 0; at < Math.max(a.length, b.length); at++) {
    const found = compareParts(a[at] ?? '0', b[at] ?? '0');
    if (found !== 0) return found;
  }
  return 0;
});

/** Zeros before the first word mean nothing: `1.0.rc` is `1.rc`. */
function parse(text: string): readonly string[] | undefined {
  if (!VERSION.test(text)) return undefined;
  const parts = text.replaceAll('-', '.pre.').match(/\d+|[a-z]+/gi) ?? [];
  const word = parts.findIndex((part) => !isNumber(part));
  const end = word < 0 ? parts.length : word;
  const last = parts.slice(0, end).findLastIndex((part) => /[1-9]/.test(part));
  return [...parts.slice(0, last + 1), ...parts.slice(end)];
}

const isNumber = (part: string): boolean => /^\d/.test(part);

/** Words are older than numbers, also than the zero that stands for nothing. */
function compareParts(a: string, b: string): number {
  if (isNumber(a) !== isNumber(b)) return isNumber(a) ? 1 : -1;
  return isNumber(a) ? compareDigits(a, b) : compareText(a, b);
}
