import type { VersionScheme } from '../versions/compare.ts';

/** The OSV name of an ecosystem, its purl type, and how its versions compare. */
interface Ecosystem {
  readonly name: string;
  readonly type: string;
  readonly versionScheme: VersionScheme;
}

const ecosystems: readonly Ecosystem[] = [
  { name: 'Go', type: 'golang', versionScheme: 'semver' },
  { name: 'npm', type: 'npm', versionScheme: 'semver' },
  { name: 'PyPI', type: 'pypi', versionScheme: 'pypi' },
  { name: 'Maven', type: 'maven', versionScheme: 'maven' },
  { name: 'crates.io', type: 'cargo', versionScheme: 'semver' },
  { name: 'RubyGems', type: 'gem', versionScheme: 'gem' },
  { name: 'NuGet', type: 'nuget', versionScheme: 'nuget' },
  { name: 'Packagist', type: 'composer', versionScheme: 'composer' },
  { name: 'Hex', type: 'hex', versionScheme: 'semver' },
  { name: 'Pub', type: 'pub', versionScheme: 'semver' },
  { name: 'SwiftURL', type: 'swift', versionScheme: 'semver' },
  { name: 'GitHub Actions', type: 'githubactions', versionScheme: 'semver' },
  // Where several ecosystems have the same type, exports use the first.
  { name: 'Wolfi', type: 'apk', versionScheme: 'apk' },
  { name: 'Chainguard', type: 'apk', versionScheme: 'apk' },
  { name: 'Alpine', type: 'apk', versionScheme: 'apk' },
  { name: 'Debian', type: 'deb', versionScheme: 'deb' },
  { name: 'Ubuntu', type: 'deb', versionScheme: 'deb' },
  { name: 'Red Hat', type: 'rpm', versionScheme: 'rpm' },
  { name: 'AlmaLinux', type: 'rpm', versionScheme: 'rpm' },
  { name: 'Rocky Linux', type: 'rpm', versionScheme: 'rpm' },
  { name: 'SUSE', type: 'rpm', versionScheme: 'rpm' },
  { name: 'openSUSE', type: 'rpm', versionScheme: 'rpm' },
  { name: 'Mageia', type: 'rpm', versionScheme: 'rpm' },
  { name: 'openEuler', type: 'rpm', versionScheme: 'rpm' },
];

const byName = new Map(ecosystems.map((ecosystem) => [ecosystem.name, ecosystem]));
const byType = new Map(ecosystems.toReversed().map((ecosystem) => [ecosystem.type, ecosystem]));

/** The ecosystem without its release: `Debian` for `Debian:12`. */
const familyOf = (name: string): string => name.split(':', 1)[0] ?? name;

/** Returns `golang` for `Go`, `deb` for `Debian:12`, and the name in lower case for an unknown ecosystem. */
export const purlTypeOf = (name: string): string => byName.get(familyOf(name))?.type ?? familyOf(name).toLowerCase();

/** Returns `Go` for `golang`. */
export const ecosystemOf = (type: string): string | undefined => byType.get(type)?.name;

/** Unknown ecosystems get `semver`, because most of them use semantic versioning. */
export const versionSchemeOf = (name: string): VersionScheme => byName.get(familyOf(name))?.versionScheme ?? 'semver';
