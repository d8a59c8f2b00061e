import { compareDigits, compareText, ordered } from './order.ts';

interface Version {
  readonly epoch: string;
  readonly version: string;
  readonly release: string;
}

/** Versions of RPM packages (rpm-version(7)). */
export const compareRpm = ordered(
  parse,
  (a, b) => compareDigits(a.epoch, b.epoch) || compareParts(a.version, b.version) || compareParts(a.release, b.release),
);

function parse(text: string): Version | undefined {
  const found = /^(?:(\d+):)?([^\s:-]+)(?:-([^\s:-]+))?$/.exec(text);
  if (!found) return undefined;
  const [, epoch = '0', version = '', release = ''] = found;
  return { epoch, version, release };
}

/** What lies between the parts does not count: `1.0` and `1_0` are the same. */
const PART = /\d+|[A-Za-z]+|[~^]/g;

function compareParts(a: string, b: string): number {
  const left = a.match(PART) ?? [];
  const right = b.match(PART) ?? [];
  for (let at = 0; at < Math.max(left.length, right.length); at++) {
    const [one = '', other = ''] = [left[at], right[at]];
    const found = rankOf(one) - rankOf(other) || (isNumber(one) ? compareDigits(one, other) : compareText(one, other));
    if (found !== 0) return found;
  }
  return 0;
}

const isNumber = (part: string): boolean => /^\d/.test(part);

/** From the oldest: a tilde comes before the end, a caret right after it, and numbers are newer than words. */
function rankOf(part: string): number {
  if (part === '~') return 0;
  if (part === '') return 1;
  if (part === '^') return 2;
  return isNumber(part) ? 4 : 3;
}
