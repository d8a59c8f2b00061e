import semver from 'semver';

/**
 * Returns why a version cannot be released, or undefined if it can. It must be greater than all released versions, and
 * not smaller than that of package.json.
 */
export function versionProblem(version: string, current: string, released: readonly string[]): string | undefined {
  if (semver.valid(version) !== version) {
    return `"${version}" is not a semantic version such as ${semver.inc(current, 'minor')}`;
  }
  const last = semver.rsort(released.filter((tag) => semver.valid(tag)))[0];
  if (last !== undefined && semver.lte(version, last)) {
    return `${version} is not greater than ${last}, which is released: use ${semver.inc(last, 'patch')} or greater`;
  }
  if (semver.lt(version, current)) return `${version} is smaller than ${current}, the version in package.json`;
  return undefined;
}
