import { compareApk } from './apk.ts';
import { compareComposer } from './composer.ts';
import { compareDebian } from './debian.ts';
import { compareGem } from './gem.ts';
import { compareMaven } from './maven.ts';
import { comparePypi } from './pypi.ts';
import { compareRpm } from './rpm.ts';
import { compareNuget, compareSemver } from './semver.ts';

const comparisons = {
  apk: compareApk,
  composer: compareComposer,
  deb: compareDebian,
  gem: compareGem,
  maven: compareMaven,
  nuget: compareNuget,
  pypi: comparePypi,
  rpm: compareRpm,
  semver: compareSemver,
} as const;

/** A family of packages that agree on what a newer version is. */
export type VersionRules = keyof typeof comparisons;

/**
 * Negative when `a` is older than `b`, positive when it is newer, by the rules of their ecosystem. What the rules do not
 * know as a version is older than all that they do, so that any texts can be sorted.
 */
export const compareVersions = (rules: VersionRules, a: string, b: string): number => comparisons[rules](a, b);
