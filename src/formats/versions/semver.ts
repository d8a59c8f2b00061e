import { compareDigits, compareText, ordered } from './order.ts';

interface Version {
  readonly numbers: readonly string[];
  /** What follows a dash, as in `1.0.0-rc.1`; nothing for a release. */
  readonly early: readonly string[] | undefined;
}

const VERSION = /^v?(\d+(?:\.\d+)*)(?:-([0-9a-z-]+(?:\.[0-9a-z-]+)*))?(?:\+[0-9a-z.-]+)?$/i;

/**
 * Semantic versions (semver.org, section 11), also with a `v` in front, and with fewer numbers than three or more, as NuGet
 * and others have them: `1.0` is `1.0.0`, and `1.0.0.1` is newer. Build metadata does not count.
 */
export const compareSemver = ordered(
  parse,
  (a, b) => compareNumbers(a.numbers, b.numbers) || compareEarly(a.early, b.early),
);

/** Versions of .NET packages, which differ in nothing that only case tells apart. */
export const compareNuget = (a: string, b: string): number => compareSemver(a.toLowerCase(), b.toLowerCase());

function parse(text: string): Version | undefined {
  const [, numbers, early] = VERSION.exec(text) ?? [];
  return numbers === undefined ? undefined : { numbers: numbers.split('.'), early: early?.split('.') };
}

/** A number that is not there is a zero. */
export function compareNumbers(a: readonly string[], b: readonly string[]): number {
  for (let at = 0; at < Math.max(a.length, b.length); at++) {
    const found = compareDigits(a[at] ?? '', b[at] ?? '');
    if (found !== 0) return found;
  }
  return 0;
}

function compareEarly(a: Version['early'], b: Version['early']): number {
  if (!a || !b) return Number(a === undefined) - Number(b === undefined);
  for (const [at, one] of a.entries()) {
    const other = b[at];
    if (other === undefined) return 1;
    const found =
      isNumber(other) - isNumber(one) || (isNumber(one) ? compareDigits(one, other) : compareText(one, other));
    if (found !== 0) return found;
  }
  return a.length - b.length;
}

/** Numbers are older than words. */
const isNumber = (part: string): number => Number(/^\d+$/.test(part));
