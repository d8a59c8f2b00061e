import type { VersionRules } from './versions/compare.ts';

/** What OSV calls a family of packages, the type that purl and we use for it, and how its versions compare. */
interface Ecosystem {
  readonly name: string;
  readonly type: string;
  readonly rules: VersionRules;
}

const ecosystems: readonly Ecosystem[] = [
  { name: 'Go', type: 'golang', rules: 'semver' },
  { name: 'npm', type: 'npm', rules: 'semver' },
  { name: 'PyPI', type: 'pypi', rules: 'pypi' },
  { name: 'Maven', type: 'maven', rules: 'maven' },
  { name: 'crates.io', type: 'cargo', rules: 'semver' },
  { name: 'RubyGems', type: 'gem', rules: 'gem' },
  { name: 'NuGet', type: 'nuget', rules: 'nuget' },
  { name: 'Packagist', type: 'composer', rules: 'composer' },
  { name: 'Hex', type: 'hex', rules: 'semver' },
  { name: 'Pub', type: 'pub', rules: 'semver' },
  { name: 'SwiftURL', type: 'swift', rules: 'semver' },
  { name: 'GitHub Actions', type: 'githubactions', rules: 'semver' },
  // Of several names for one type, the first is what we write.
  { name: 'Wolfi', type: 'apk', rules: 'apk' },
  { name: 'Chainguard', type: 'apk', rules: 'apk' },
  { name: 'Alpine', type: 'apk', rules: 'apk' },
  { name: 'Debian', type: 'deb', rules: 'deb' },
  { name: 'Ubuntu', type: 'deb', rules: 'deb' },
  { name: 'Red Hat', type: 'rpm', rules: 'rpm' },
  { name: 'AlmaLinux', type: 'rpm', rules: 'rpm' },
  { name: 'Rocky Linux', type: 'rpm', rules: 'rpm' },
  { name: 'SUSE', type: 'rpm', rules: 'rpm' },
  { name: 'openSUSE', type: 'rpm', rules: 'rpm' },
  { name: 'Mageia', type: 'rpm', rules: 'rpm' },
  { name: 'openEuler', type: 'rpm', rules: 'rpm' },
];

const byName = new Map(ecosystems.map((ecosystem) => [ecosystem.name, ecosystem]));
const byType = new Map(ecosystems.toReversed().map((ecosystem) => [ecosystem.type, ecosystem]));

/** The family is what stands before the colon of `Debian:12`. */
const familyOf = (name: string): string => name.split(':', 1)[0] ?? name;

/** `golang` for `Go`, `deb` for `Debian:12`; a family that we do not know is its own type. */
export const typeOfEcosystem = (name: string): string =>
  byName.get(familyOf(name))?.type ?? familyOf(name).toLowerCase();

/** `Go` for `golang`. */
export const ecosystemOfType = (type: string): string | undefined => byType.get(type)?.name;

/** How versions compare in an ecosystem. Most that we do not know follow semantic versioning. */
export const rulesFor = (name: string): VersionRules => byName.get(familyOf(name))?.rules ?? 'semver';
