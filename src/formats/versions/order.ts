/** Text by its code units, which for ASCII is bytewise. */
export const compareText = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0);

/** Digits by their value, however many there are. */
export function compareDigits(a: string, b: string): number {
  const [left, right] = [a.replace(/^0+/, ''), b.replace(/^0+/, '')];
  return left.length - right.length || compareText(left, right);
}

/** Orders what `parse` understands by `compare`, and everything else before it, as text. */
export function ordered<T>(parse: (text: string) => T | undefined, compare: (a: T, b: T) => number) {
  return (a: string, b: string): number => {
    const left = parse(a);
    const right = parse(b);
    if (left !== undefined && right !== undefined) return compare(left, right);
    if (left === undefined && right === undefined) return compareText(a, b);
    return left === undefined ? -1 : 1;
  };
}
