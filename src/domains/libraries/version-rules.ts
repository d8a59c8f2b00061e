import type { FieldViolation } from '../../base/errors.ts';
import type { Ecosystem } from '../../contract/gen/chainguard/platform/libraries/v2/artifacts_pb.js';
import type { LibraryVersion } from '../../contract/gen/wharfinger/imports/v1/libraries_pb.js';
import * as rules from '../../resource/rules.ts';
import { rulesOf } from './ecosystems.ts';

/** Both are part of a key, and those have their limits. */
const MAX_NAME = 512;
const MAX_VERSION = 128;
const VERSION = /^[^\s\p{Cc}/\\]+$/u;
const MAX_FILES = 1000;
/** 8 TiB: no file is larger, and the sum of all has room in a number. */
const MAX_SIZE = 2n ** 43n;
const fileName = rules.line(MAX_NAME);

/** What is wrong with a version that somebody brings. */
export function versionProblems(ecosystem: Ecosystem, given: LibraryVersion): FieldViolation[] {
  const found: FieldViolation[] = [];
  const refuse = (field: string, description: string | undefined): void => {
    if (description !== undefined) found.push({ field, description });
  };
  const { name, version, description, files } = given;
  refuse('name', nameProblem(ecosystem, name));
  if (version.length > MAX_VERSION || !VERSION.test(version)) {
    refuse('version', `must be 1 to ${MAX_VERSION} characters without spaces and slashes`);
  }
  refuse('description', rules.description(description));
  if (files.length === 0 || files.length > MAX_FILES) refuse('files', `must be 1 to ${MAX_FILES} files`);
  const names = new Set<string>();
  for (const [at, { name, sizeBytes }] of files.entries()) {
    refuse(`files[${at}].name`, name === '' ? 'must not be empty' : fileName(name));
    if (names.has(name)) refuse(`files[${at}].name`, 'is named twice');
    if (sizeBytes < 0n || sizeBytes > MAX_SIZE) refuse(`files[${at}].size_bytes`, `must be 0 to ${MAX_SIZE}`);
    names.add(name);
  }
  return found;
}

function nameProblem(ecosystem: Ecosystem, name: string): string | undefined {
  const { name: form, nameForm } = rulesOf(ecosystem);
  if (name.length > MAX_NAME) return `must have at most ${MAX_NAME} characters`;
  return form.test(name) ? undefined : nameForm;
}
