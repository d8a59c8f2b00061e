import type { Ecosystem } from '../../contract/gen/chainguard/platform/libraries/v2/artifacts_pb.js';
import { Ecosystem as V1Ecosystem } from '../../contract/gen/platform/libraries/v1/entitlements.libraries.platform_pb.js';
import { normalizePythonName } from '../../formats/libraries/python-name.ts';
import { compareVersions, type VersionScheme } from '../../formats/versions/compare.ts';
import { normalizePypiVersion } from '../../formats/versions/pypi.ts';

/** The naming and versioning rules of an ecosystem. */
interface EcosystemRules {
  readonly namePattern: RegExp;
  /** The error for a name that does not match the pattern. */
  readonly nameProblem: string;
  readonly versionScheme: VersionScheme;
  /** Names that are normalized to the same text are the same library. */
  normalizeName(name: string): string;
  /** Versions that are normalized to the same text are the same version. */
  normalizeVersion(version: string): string;
  /** The version of CUDA that a version is built for, such as `12.1`; empty for none. */
  cudaOf(version: string): string;
}

const java: EcosystemRules = {
  namePattern: /^[\w.-]+:[\w.-]+$/,
  nameProblem: 'must be <group id>:<artifact id>, each of letters, digits, _, . and -',
  versionScheme: 'maven',
  normalizeName: (name) => name,
  normalizeVersion: (version) => version,
  cudaOf: () => '',
};

/** A build for CUDA names it in the local part of its version, as in `2.1.0+cu121`. */
const CUDA = /\+(?:.*\.)?cu(\d+)(\d)(?:\.|$)/;

const python: EcosystemRules = {
  namePattern: /^[A-Za-z0-9](?:[\w.-]*[A-Za-z0-9])?$/,
  nameProblem: 'must be letters, digits, _, . and -, with a letter or digit at either end',
  versionScheme: 'pypi',
  normalizeName: normalizePythonName,
  normalizeVersion: (version) => normalizePypiVersion(version) ?? version,
  cudaOf(version) {
    const [, major, minor] = CUDA.exec(version) ?? [];
    return major === undefined ? '' : `${major}.${minor}`;
  },
};

const javascript: EcosystemRules = {
  namePattern: /^(?:@[\w~-][\w.~-]*\/)?[\w~-][\w.~-]*$/,
  nameProblem: 'must be a name of npm, such as left-pad or @types/node',
  versionScheme: 'semver',
  normalizeName: (name) => name,
  normalizeVersion: (version) => version.replace(/^[=v]+/, ''),
  cudaOf: () => '',
};

/** v2 does not define it, so lists of v2 contain no artifact of it. Ecosystems have the same numbers in v1. */
export const JAVASCRIPT = V1Ecosystem.JAVASCRIPT as number as Ecosystem;

/** The rules of each ecosystem, by its purl type. The others are only named in policies and malware entries. */
const rulesByPurlType: Readonly<Record<string, EcosystemRules>> = { pypi: python, npm: javascript };

export const rulesOf = (ecosystem: Ecosystem | V1Ecosystem): EcosystemRules =>
  rulesByPurlType[purlTypeOf(ecosystem)] ?? java;

const purlTypes: Readonly<Record<string, string>> = {
  JAVA: 'maven',
  PYTHON: 'pypi',
  JAVASCRIPT: 'npm',
  DOTNET: 'nuget',
  GO: 'golang',
};

/** The purl type of an ecosystem, such as `maven` for JAVA and JAVA_ATHENA; empty for an unknown number. */
export const purlTypeOf = (ecosystem: Ecosystem | V1Ecosystem): string =>
  purlTypes[V1Ecosystem[ecosystem]?.replace('_ATHENA', '') ?? ''] ?? '';

const RELEASE = /^v?(?:\d+!)?\d+(?:\.\d+)*/i;

/** Whether `version` comes after `other` as the latest version. A release comes after every pre-release. */
export function isLater(ecosystem: Ecosystem, version: string, other: string): boolean {
  const { versionScheme } = rulesOf(ecosystem);
  const isPreRelease = (text: string): boolean => {
    const [release] = RELEASE.exec(text) ?? [];
    // `2.0-rc1` is a pre-release, because it is older than `2.0`. `2.0.post1` and `2.0-jre` are not older.
    return release === undefined || compareVersions(versionScheme, text, release) < 0;
  };
  if (isPreRelease(version) !== isPreRelease(other)) return isPreRelease(other);
  return compareVersions(versionScheme, version, other) > 0;
}
