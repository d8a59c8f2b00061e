import { compareDigits, compareText } from './order.ts';

/** A number or a qualifier. What stood before it counts for numbers only: `1-1` is older than `1.1`. */
interface Token {
  readonly text: string;
  readonly rank: (typeof Rank)[keyof typeof Rank];
}

const Rank = { qualifier: 0, dashedNumber: 1, number: 2 } as const;

/**
 * Versions of Maven artifacts, by the "Version Order Specification" of the POM reference; any text is one. Zeros before a
 * qualifier mean nothing after a dot either (`1.0.rc` is `1-rc`): else `1.0.rc` < `1` < `1-sp` < `1.0.rc`, as in Maven itself.
 */
export function compareMaven(a: string, b: string): number {
  const left = parse(a);
  const right = parse(b);
  for (let at = 0; at < Math.max(left.length, right.length); at++) {
    const found = compareTokens(left[at] ?? RELEASE, right[at] ?? RELEASE);
    if (found !== 0) return found;
  }
  return 0;
}

const RELEASE: Token = { text: '', rank: Rank.qualifier };

function parse(text: string): Token[] {
  const tokens: Token[] = [];
  // A change between digits and letters counts as a dash, nothing between two separators as a zero.
  for (const [, separator, digits, word, next] of `.${text.toLowerCase()}`.matchAll(
    /([.-]?)(?:([0-9]+)|([^.0-9-]+)(?=([0-9]?))|(?<=[.-]))/g,
  )) {
    if (word !== undefined) {
      trim(tokens);
      tokens.push({ text: meaningOf(word, next !== ''), rank: Rank.qualifier });
    } else {
      const isDashed = separator !== '.';
      if (isDashed) trim(tokens);
      tokens.push({ text: digits ?? '0', rank: isDashed ? Rank.dashedNumber : Rank.number });
    }
  }
  return trim(tokens);
}

/** Takes away what means nothing at the end. */
function trim(tokens: Token[]): Token[] {
  while (/^0*$/.test(tokens.at(-1)?.text ?? '1')) tokens.pop();
  return tokens;
}

const SHORT = new Map(Object.entries({ a: 'alpha', b: 'beta', m: 'milestone' }));
const SAME = new Map(Object.entries({ ga: '', final: '', release: '', cr: 'rc' }));

const meaningOf = (word: string, isBeforeDigit: boolean): string =>
  (isBeforeDigit ? SHORT.get(word) : undefined) ?? SAME.get(word) ?? word;

const WORDS = ['alpha', 'beta', 'milestone', 'rc', 'snapshot', '', 'sp'];

function compareTokens(a: Token, b: Token): number {
  if (a.rank !== b.rank) return a.rank - b.rank;
  if (a.rank !== Rank.qualifier) return compareDigits(a.text, b.text);
  return weightOf(a.text) - weightOf(b.text) || compareText(a.text, b.text);
}

/** Words that nobody knows come after all that everybody knows. */
const weightOf = (word: string): number => (WORDS.includes(word) ? WORDS.indexOf(word) : WORDS.length);
