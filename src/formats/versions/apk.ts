import { compareDigits, compareText, createComparator } from './comparator.ts';

/** `1.2.3b_rc1_p2~c0ffee-r4` */
const VERSION = /^\d+(?:\.\d+)*[a-z]?(?:_(?:alpha|beta|pre|rc|cvs|svn|git|hg|p)\d*)*(?:~[0-9a-f]+)?(?:-r\d+)?$/;
const PART = /(?<=\.)\d+|^\d+|_[a-z]+|~[0-9a-f]+|-r\d+|[a-z]|\d+/g;
const BEFORE_RELEASE = ['_alpha', '_beta', '_pre', '_rc'];
const AFTER_RELEASE = ['_cvs', '_svn', '_git', '_hg', '_p'];

/**
 * The types of parts at the same position of two versions, oldest first: `1_rc` is older than `1`, and `1` is older
 * than `1-r1`, `1_p`, `1b` and `1.1`, in this order (apk-tools, src/version.c).
 */
const Rank = { preRelease: 0, end: 1, revision: 2, commit: 3, count: 4, postRelease: 5, letter: 6, number: 7 } as const;

interface Part {
  readonly rank: (typeof Rank)[keyof typeof Rank];
  readonly text: string;
  readonly isFirst?: boolean;
}

const END: Part = { rank: Rank.end, text: '' };

/** Compares versions of Alpine and Wolfi packages. */
export const compareApk = createComparator(parse, (a, b) => {
  for (let index = 0; index < Math.max(a.length, b.length); index++) {
    const order = compareParts(a[index] ?? END, b[index] ?? END);
    if (order !== 0) return order;
  }
  return 0;
});

function parse(text: string): Part[] | undefined {
  if (!VERSION.test(text)) return undefined;
  let isRelease = true;
  return [...text.matchAll(PART)].map(([part], index): Part => {
    if (BEFORE_RELEASE.includes(part) || AFTER_RELEASE.includes(part)) isRelease = false;
    if (BEFORE_RELEASE.includes(part)) return { rank: Rank.preRelease, text: part };
    if (AFTER_RELEASE.includes(part)) return { rank: Rank.postRelease, text: part };
    if (part.startsWith('~')) return { rank: Rank.commit, text: part };
    if (part.startsWith('-r')) return { rank: Rank.revision, text: part.slice(2) };
    if (/^[a-z]$/.test(part)) return { rank: Rank.letter, text: part };
    return { rank: isRelease ? Rank.number : Rank.count, text: part, isFirst: index === 0 };
  });
}

function compareParts(a: Part, b: Part): number {
  if (a.rank !== b.rank) return a.rank - b.rank;
  switch (a.rank) {
    case Rank.preRelease:
      return BEFORE_RELEASE.indexOf(a.text) - BEFORE_RELEASE.indexOf(b.text);
    case Rank.postRelease:
      return AFTER_RELEASE.indexOf(a.text) - AFTER_RELEASE.indexOf(b.text);
    case Rank.number:
      // After a dot, a number with a leading zero is a decimal fraction: 1.05 is older than 1.1.
      if (!a.isFirst && (a.text.startsWith('0') || b.text.startsWith('0'))) return compareText(a.text, b.text);
      return compareDigits(a.text, b.text);
    case Rank.count:
    case Rank.revision:
      return compareDigits(a.text, b.text);
    default:
      return compareText(a.text, b.text);
  }
}
