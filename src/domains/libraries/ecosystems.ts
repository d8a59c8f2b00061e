import { Ecosystem } from '../../contract/gen/chainguard/platform/libraries/v2/artifacts_pb.js';
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

export const rulesOf = (ecosystem: Ecosystem): EcosystemRules => (ecosystem === Ecosystem.PYTHON ? python : java);

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
