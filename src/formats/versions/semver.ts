import { compareDigits, compareText, createComparator } from './comparator.ts';

interface Version {
  readonly numbers: readonly string[];
  /** The parts after the dash, as in `1.0.0-rc.1`. Undefined for a release. */
  readonly preRelease: readonly string[] | undefined;
}

const VERSION = /^v?(\d+(?:\.\d+)*)(?:-([0-9a-z-]+(?:\.[0-9a-z-]+)*))?(?:\+[0-9a-z.-]+)?$/i;

/**
 * Compares semantic versions (semver.org, section 11). Also accepts a leading `v`, and fewer or more than three
 * numbers, as in NuGet: `1.0` is `1.0.0`, and `1.0.0.1` is newer. Build metadata is ignored.
 */
export const compareSemver = createComparator(
  parse,
  (a, b) => compareNumbers(a.numbers, b.numbers) || comparePreReleases(a.preRelease, b.preRelease),
);

/** Compares versions of .NET packages, ignoring case. */
export const compareNuget = (a: string, b: string): number => compareSemver(a.toLowerCase(), b.toLowerCase());

function parse(text: string): Version | undefined {
  const [, numbers, preRelease] = VERSION.exec(text) ?? [];
  return numbers === undefined ? undefined : { numbers: numbers.split('.'), preRelease: preRelease?.split('.') };
}

/** Missing numbers count as zero. */
export function compareNumbers(a: readonly string[], b: readonly string[]): number {
  for (let index = 0; index < Math.max(a.length, b.length); index++) {
    const order = compareDigits(a[index] ?? '', b[index] ?? '');
    if (order !== 0) return order;
  }
  return 0;
}

function comparePreReleases(a: Version['preRelease'], b: Version['preRelease']): number {
  if (!a || !b) return Number(a === undefined) - Number(b === undefined);
  for (const [index, one] of a.entries()) {
    const other = b[index];
    if (other === undefined) return 1;
    const order =
      isNumber(other) - isNumber(one) || (isNumber(one) ? compareDigits(one, other) : compareText(one, other));
    if (order !== 0) return order;
  }
  return a.length - b.length;
}

/** 1 for a number, 0 for a word: numbers are older than words. */
const isNumber = (part: string): number => Number(/^\d+$/.test(part));
