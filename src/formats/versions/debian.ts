import { compareDigits, createComparator } from './comparator.ts';

interface Version {
  readonly epoch: string;
  readonly upstream: string;
  readonly revision: string;
}

/** Compares versions of Debian packages (Debian Policy 5.6.12). */
export const compareDebian = createComparator(
  parse,
  (a, b) =>
    compareDigits(a.epoch, b.epoch) || compareText(a.upstream, b.upstream) || compareText(a.revision, b.revision),
);

/** The revision follows the last dash. The upstream version may contain colons only if there is an epoch. */
function parse(text: string): Version | undefined {
  const [, epoch, rest = ''] = /^(?:(\d+):)?([A-Za-z0-9.+~:-]+)$/.exec(text) ?? [];
  const cut = rest.lastIndexOf('-');
  const [upstream, revision] = cut < 0 ? [rest, '0'] : [rest.slice(0, cut), rest.slice(cut + 1)];
  if (upstream === '' || revision === '' || revision.includes(':')) return undefined;
  if (epoch === undefined && rest.includes(':')) return undefined;
  return { epoch: epoch ?? '0', upstream, revision };
}

/** Compares the parts in pairs of a text and a number. Missing parts are empty. */
function compareText(a: string, b: string): number {
  const left = partsOf(a);
  const right = partsOf(b);
  for (let index = 0; index < Math.max(left.length, right.length); index += 2) {
    const order =
      compareLetters(left[index] ?? '', right[index] ?? '') ||
      compareDigits(left[index + 1] ?? '', right[index + 1] ?? '');
    if (order !== 0) return order;
  }
  return 0;
}

/** Returns '', 1, '.', 10, '~rc' for `1.10~rc`. */
const partsOf = (text: string): string[] => text.split(/(\d+)/);

function compareLetters(a: string, b: string): number {
  for (let index = 0; index < Math.max(a.length, b.length); index++) {
    const order = weightOf(a[index]) - weightOf(b[index]);
    if (order !== 0) return order;
  }
  return 0;
}

/** A tilde sorts before the end, and letters sort before all other characters. */
function weightOf(character: string | undefined): number {
  if (character === undefined) return 0;
  if (character === '~') return -1;
  const code = character.charCodeAt(0);
  return /[A-Za-z]/.test(character) ? code : code + 256;
}
