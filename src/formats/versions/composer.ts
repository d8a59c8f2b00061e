import { createComparator } from './comparator.ts';
import { compareNumbers } from './semver.ts';

interface Version {
  readonly numbers: readonly string[];
  readonly stage: number;
  readonly count: readonly string[];
  /** A development version before the one that the other parts name. */
  readonly isDev: boolean;
}

const VERSION =
  /^v?(\d+(?:\.\d+)*)(?:[._-]?(stable|beta|b|rc|alpha|a|patch|pl|p)(?:[.-]?(\d+(?:[.-]\d+)*))?)?([.-]?dev)?(?:\+\S*)?$/i;

/** Oldest first. The empty stage is a release. */
const STAGES = ['dev', 'alpha', 'beta', 'rc', '', 'patch'];
const STAGE_ALIASES = new Map(Object.entries({ a: 'alpha', b: 'beta', stable: '', pl: 'patch', p: 'patch' }));

/** Compares versions of PHP packages like Composer. Branch names are not versions. */
export const compareComposer = createComparator(
  parse,
  (a, b) =>
    compareNumbers(a.numbers, b.numbers) ||
    a.stage - b.stage ||
    compareNumbers(a.count, b.count) ||
    Number(b.isDev) - Number(a.isDev),
);

function parse(text: string): Version | undefined {
  const match = VERSION.exec(text);
  if (!match) return undefined;
  const [, numbers = '', stage = '', count = '', dev] = match;
  const word = stage.toLowerCase() || (dev === undefined ? '' : 'dev');
  return {
    numbers: numbers.split('.'),
    stage: STAGES.indexOf(STAGE_ALIASES.get(word) ?? word),
    count: count.split(/[.-]/),
    isDev: dev !== undefined,
  };
}
