import { ordered } from './order.ts';
import { compareNumbers } from './semver.ts';

interface Version {
  readonly numbers: readonly string[];
  readonly stage: number;
  readonly count: readonly string[];
  /** Still on its way to what the rest says. */
  readonly isDev: boolean;
}

const VERSION =
  /^v?(\d+(?:\.\d+)*)(?:[._-]?(stable|beta|b|rc|alpha|a|patch|pl|p)(?:[.-]?(\d+(?:[.-]\d+)*))?)?([.-]?dev)?(?:\+\S*)?$/i;

/** From the oldest; what says nothing is a release. */
const STAGES = ['dev', 'alpha', 'beta', 'rc', '', 'patch'];
const SAME = new Map(Object.entries({ a: 'alpha', b: 'beta', stable: '', pl: 'patch', p: 'patch' }));

/** Versions of PHP packages, as Composer orders them; names of branches are none. */
export const compareComposer = ordered(
  parse,
  (a, b) =>
    compareNumbers(a.numbers, b.numbers) ||
    a.stage - b.stage ||
    compareNumbers(a.count, b.count) ||
    Number(b.isDev) - Number(a.isDev),
);

function parse(text: string): Version | undefined {
  const found = VERSION.exec(text);
  if (!found) return undefined;
  const [, numbers = '', stage = '', count = '', dev] = found;
  const word = stage.toLowerCase() || (dev === undefined ? '' : 'dev');
  return {
    numbers: numbers.split('.'),
    stage: STAGES.indexOf(SAME.get(word) ?? word),
    count: count.split(/[.-]/),
    isDev: dev !== undefined,
  };
}
