import { compare, parse as parseSemver, type SemVer } from 'semver';
import { ordered } from './order.ts';

/** Semantic versions, also with a `v` in front and with fewer than three numbers. Build metadata does not count. */
export const compareSemver = ordered(parse, compare);

const CORE = /^v?(\d+)(?:\.(\d+))?(?:\.(\d+))?/;

function parse(text: string): SemVer | undefined {
  const full = text.replace(CORE, (_, major: string, minor = '0', patch = '0') => `${major}.${minor}.${patch}`);
  return parseSemver(full) ?? undefined;
}
