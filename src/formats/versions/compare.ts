import { compareApk } from './apk.ts';
import { compareComposer } from './composer.ts';
import { compareDebian } from './debian.ts';
import { compareGem } from './gem.ts';
import { compareMaven } from './maven.ts';
import { comparePypi } from './pypi.ts';
import { compareRpm } from './rpm.ts';
import { compareNuget, compareSemver } from './semver.ts';

const comparators = {
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

/** A way to order versions, which the packages of one or several ecosystems use. */
export type VersionScheme = keyof typeof comparators;

/**
 * Returns a negative number if `a` is older than `b`, and a positive one if it is newer. A text that is not a version
 * of the scheme is older than all versions, so that any texts can be sorted.
 */
export const compareVersions = (scheme: VersionScheme, a: string, b: string): number => comparators[scheme](a, b);
