import { compareDigits, compareText, createComparator } from './comparator.ts';

interface Version {
  readonly epoch: string;
  readonly version: string;
  readonly release: string;
}

/** Compares versions of RPM packages (rpm-version(7)). */
export const compareRpm = createComparator(
  parse,
  (a, b) => compareDigits(a.epoch, b.epoch) || compareParts(a.version, b.version) || compareParts(a.release, b.release),
);

function parse(text: string): Version | undefined {
  const match = /^(?:(\d+):)?([^\s:-]+)(?:-([^\s:-]+))?$/.exec(text);
  if (!match) return undefined;
  const [, epoch = '0', version = '', release = ''] = match;
  return { epoch, version, release };
}

/** Separators are ignored: `1.0` and `1_0` are equal. */
const PART = /\d+|[A-Za-z]+|[~^]/g;

function compareParts(a: string, b: string): number {
  const left = a.match(PART) ?? [];
  const right = b.match(PART) ?? [];
  for (let index = 0; index < Math.max(left.length, right.length); index++) {
    const [one = '', other = ''] = [left[index], right[index]];
    const order = rankOf(one) - rankOf(other) || (isNumber(one) ? compareDigits(one, other) : compareText(one, other));
    if (order !== 0) return order;
  }
  return 0;
}

const isNumber = (part: string): boolean => /^\d/.test(part);

/** Oldest first: tilde, end, caret, word, number. */
function rankOf(part: string): number {
  if (part === '~') return 0;
  if (part === '') return 1;
  if (part === '^') return 2;
  return isNumber(part) ? 4 : 3;
}
