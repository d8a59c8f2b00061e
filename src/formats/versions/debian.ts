import { compareDigits, ordered } from './order.ts';

interface Version {
  readonly epoch: string;
  readonly upstream: string;
  readonly revision: string;
}

/** Versions of Debian packages, as Debian Policy 5.6.12 orders them. */
export const compareDebian = ordered(
  parse,
  (a, b) =>
    compareDigits(a.epoch, b.epoch) || compareText(a.upstream, b.upstream) || compareText(a.revision, b.revision),
);

/** The revision is what follows the last dash. A colon belongs to the epoch, or stands behind one. */
function parse(text: string): Version | undefined {
  const [, epoch, rest = ''] = /^(?:(\d+):)?([A-Za-z0-9.+~:-]+)$/.exec(text) ?? [];
  const cut = rest.lastIndexOf('-');
  const [upstream, revision] = cut < 0 ? [rest, '0'] : [rest.slice(0, cut), rest.slice(cut + 1)];
  if (upstream === '' || revision === '' || revision.includes(':')) return undefined;
  if (epoch === undefined && rest.includes(':')) return undefined;
  return { epoch: epoch ?? '0', upstream, revision };
}

/** Texts and numbers take turns; each finds its like in the other version, or nothing. */
function compareText(a: string, b: string): number {
  const left = partsOf(a);
  const right = partsOf(b);
  for (let at = 0; at < Math.max(left.length, right.length); at += 2) {
    const found =
      compareLetters(left[at] ?? '', right[at] ?? '') || compareDigits(left[at + 1] ?? '', right[at + 1] ?? '');
    if (found !== 0) return found;
  }
  return 0;
}

/** `1.10~rc` gives '', 1, '.', 10, '~rc'. */
const partsOf = (text: string): string[] => text.split(/(\d+)/);

function compareLetters(a: string, b: string): number {
  for (let at = 0; at < Math.max(a.length, b.length); at++) {
    const found = weightOf(a[at]) - weightOf(b[at]);
    if (found !== 0) return found;
  }
  return 0;
}

/** A tilde comes even before the end, letters before all else. */
function weightOf(character: string | undefined): number {
  if (character === undefined) return 0;
  if (character === '~') return -1;
  const code = character.charCodeAt(0);
  return /[A-Za-z]/.test(character) ? code : code + 256;
}
