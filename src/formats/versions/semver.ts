import type { SemVer } from 'semver';
import { lazyPackage } from '../../base/lazy-package.ts';
import { ordered } from './order.ts';

const semver = lazyPackage<typeof import('semver')>('semver');

/** Semantic versions, also with a `v` in front and with fewer than three numbers. Build metadata does not count. */
export const compareSemver = ordered(parse, (a: SemVer, b: SemVer) => semver().compare(a, b));

const CORE = /^v?(\d+)(?:\.(\d+))?(?:\.(\d+))?/;

function parse(text: string): SemVer | undefined {
  const full = text.replace(CORE, (_, major: string, minor = '0', patch = '0') => `${major}.${minor}.${patch}`);
  return semver().parse(full) ?? undefined;
}
