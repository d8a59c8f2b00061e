/** Compares texts by code units, which is bytewise for ASCII. */
export const compareText = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0);

/** Compares decimal numbers of any length by value. */
export function compareDigits(a: string, b: string): number {
  const [left, right] = [a.replace(/^0+/, ''), b.replace(/^0+/, '')];
  return left.length - right.length || compareText(left, right);
}

/** Returns a comparator of versions. Texts that `parse` does not accept come before all versions, in text order. */
export function createComparator<T>(parse: (text: string) => T | undefined, compare: (a: T, b: T) => number) {
  return (a: string, b: string): number => {
    const left = parse(a);
    const right = parse(b);
    if (left !== undefined && right !== undefined) return compare(left, right);
    if (left === undefined && right === undefined) return compareText(a, b);
    return left === undefined ? -1 : 1;
  };
}
