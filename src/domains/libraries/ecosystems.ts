import { Ecosystem } from '../../contract/gen/chainguard/platform/libraries/v2/artifacts_pb.js';
import { compareVersions, type VersionRules } from '../../formats/versions/compare.ts';
import { normalPypi } from '../../formats/versions/pypi.ts';
import { normalPythonName } from '../../formats/wheel-name.ts';

/** What the packages of a language agree on. */
interface EcosystemRules {
  readonly name: RegExp;
  /** For people whose name does not match. */
  readonly nameForm: string;
  readonly versions: VersionRules;
  /** Two names are the same library when these are equal. */
  normalName(name: string): string;
  /** Two versions are the same when these are equal. */
  normalVersion(version: string): string;
  /** The version of CUDA that a version is built for, such as `12.1`; empty for none. */
  cudaOf(version: string): string;
}

const java: EcosystemRules = {
  name: /^[\w.-]+:[\w.-]+$/,
  nameForm: 'must be <group id>:<artifact id>, each of letters, digits, _, . and -',
  versions: 'maven',
  normalName: (name) => name,
  normalVersion: (version) => version,
  cudaOf: () => '',
};

/** The local part of a version is where builds for CUDA say so, as in `2.1.0+cu121`. */
const CUDA = /\+(?:.*\.)?cu(\d+)(\d)(?:\.|$)/;

const python: EcosystemRules = {
  name: /^[A-Za-z0-9](?:[\w.-]*[A-Za-z0-9])?$/,
  nameForm: 'must be letters, digits, _, . and -, with a letter or digit at either end',
  versions: 'pypi',
  normalName: normalPythonName,
  normalVersion: (version) => normalPypi(version) ?? version,
  cudaOf(version) {
    const [, major, minor] = CUDA.exec(version) ?? [];
    return major === undefined ? '' : `${major}.${minor}`;
  },
};

export const rulesOf = (ecosystem: Ecosystem): EcosystemRules => (ecosystem === Ecosystem.PYTHON ? python : java);

const RELEASE = /^v?(?:\d+!)?\d+(?:\.\d+)*/i;

/** Whether `version` is what people should get rather than `other`: a release before anything early, then the newer. */
export function isLater(ecosystem: Ecosystem, version: string, other: string): boolean {
  const { versions } = rulesOf(ecosystem);
  const isEarly = (text: string): boolean => {
    const [release] = RELEASE.exec(text) ?? [];
    // `2.0-rc1` is older than its own `2.0`; `2.0.post1` and `2.0-jre` are not.
    return release === undefined || compareVersions(versions, text, release) < 0;
  };
  if (isEarly(version) !== isEarly(other)) return isEarly(other);
  return compareVersions(versions, version, other) > 0;
}
