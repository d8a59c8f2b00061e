import { compareDigits, compareText } from './comparator.ts';

/** A number or a qualifier. The separator before it matters for numbers only: `1-1` is older than `1.1`. */
interface Token {
  readonly text: string;
  readonly rank: (typeof Rank)[keyof typeof Rank];
}

const Rank = { qualifier: 0, dashedNumber: 1, number: 2 } as const;

/**
 * Compares versions of Maven artifacts by the "Version Order Specification" of the POM reference. Any text is a
 * version. Zeros before a qualifier are ignored, also after a dot (`1.0.rc` is `1-rc`). Otherwise the order would have
 * a cycle, as in Maven itself: `1.0.rc` < `1` < `1-sp` < `1.0.rc`.
 */
export function compareMaven(a: string, b: string): number {
  const left = parse(a);
  const right = parse(b);
  for (let index = 0; index < Math.max(left.length, right.length); index++) {
    const order = compareTokens(left[index] ?? RELEASE, right[index] ?? RELEASE);
    if (order !== 0) return order;
  }
  return 0;
}

const RELEASE: Token = { text: '', rank: Rank.qualifier };

function parse(text: string): Token[] {
  const tokens: Token[] = [];
  // A change between digits and letters counts as a dash. An empty part between two separators counts as a zero.
  for (const [, separator, digits, word, next] of `.${text.toLowerCase()}`.matchAll(
    /([.-]?)(?:([0-9]+)|([^.0-9-]+)(?=([0-9]?))|(?<=[.-]))/g,
  )) {
    if (word !== undefined) {
      trim(tokens);
      tokens.push({ text: canonicalQualifier(word, next !== ''), rank: Rank.qualifier });
    } else {
      const isDashed = separator !== '.';
      if (isDashed) trim(tokens);
      tokens.push({ text: digits ?? '0', rank: isDashed ? Rank.dashedNumber : Rank.number });
    }
  }
  return trim(tokens);
}

/** Removes zeros and empty qualifiers from the end. */
function trim(tokens: Token[]): Token[] {
  while (/^0*$/.test(tokens.at(-1)?.text ?? '1')) tokens.pop();
  return tokens;
}

const ABBREVIATIONS = new Map(Object.entries({ a: 'alpha', b: 'beta', m: 'milestone' }));
const SYNONYMS = new Map(Object.entries({ ga: '', final: '', release: '', cr: 'rc' }));

const canonicalQualifier = (word: string, isBeforeDigit: boolean): string =>
  (isBeforeDigit ? ABBREVIATIONS.get(word) : undefined) ?? SYNONYMS.get(word) ?? word;

/** Oldest first. The empty qualifier is a release. */
const QUALIFIERS = ['alpha', 'beta', 'milestone', 'rc', 'snapshot', '', 'sp'];

function compareTokens(a: Token, b: Token): number {
  if (a.rank !== b.rank) return a.rank - b.rank;
  if (a.rank !== Rank.qualifier) return compareDigits(a.text, b.text);
  return weightOf(a.text) - weightOf(b.text) || compareText(a.text, b.text);
}

/** Unknown qualifiers are newer than the known ones. */
const weightOf = (word: string): number => (QUALIFIERS.includes(word) ? QUALIFIERS.indexOf(word) : QUALIFIERS.length);
