import type { FieldViolation } from '../../base/errors.ts';
import type { Ecosystem } from '../../contract/gen/chainguard/platform/libraries/v2/artifacts_pb.js';
import type { LibraryVersion } from '../../contract/gen/wharfinger/imports/v1/libraries_pb.js';
import * as rules from '../../resource/rules.ts';
import { rulesOf } from './ecosystems.ts';

/** Names and versions are parts of index keys, whose length is limited. */
const MAX_NAME = 512;
const MAX_VERSION = 128;
const VERSION = /^[^\s\p{Cc}/\\]+$/u;
const MAX_FILES = 1000;
/** 8 TiB, so that the sum over all files of a version is a safe integer. */
const MAX_SIZE = 2n ** 43n;
const fileName = rules.line(MAX_NAME);
const licenseLine = rules.line(512);

/** The problems of a record of an import. */
export function versionProblems(ecosystem: Ecosystem, record: LibraryVersion): FieldViolation[] {
  const problems: FieldViolation[] = [];
  const refuse = (field: string, description: string | undefined): void => {
    if (description !== undefined) problems.push({ field, description });
  };
  const { name, version, description, files } = record;
  refuse('name', problemOfName(ecosystem, name));
  if (version.length > MAX_VERSION || !VERSION.test(version)) {
    refuse('version', `must be 1 to ${MAX_VERSION} characters without spaces and slashes`);
  }
  refuse('description', rules.description(description));
  refuse('license', licenseLine(record.license));
  if (files.length === 0 || files.length > MAX_FILES) refuse('files', `must be 1 to ${MAX_FILES} files`);
  const names = new Set<string>();
  for (const [at, { name, sizeBytes }] of files.entries()) {
    refuse(`files[${at}].name`, name === '' ? 'must not be empty' : fileName(name));
    if (names.has(name)) refuse(`files[${at}].name`, 'is a duplicate');
    if (sizeBytes < 0n || sizeBytes > MAX_SIZE) refuse(`files[${at}].size_bytes`, `must be 0 to ${MAX_SIZE}`);
    names.add(name);
  }
  return problems;
}

function problemOfName(ecosystem: Ecosystem, name: string): string | undefined {
  const { namePattern, nameProblem } = rulesOf(ecosystem);
  if (name.length > MAX_NAME) return `must have at most ${MAX_NAME} characters`;
  return namePattern.test(name) ? undefined : nameProblem;
}
