import { toDigest } from '../blobs/digest.ts';
import { RegistryError } from '../domains/registry/errors.ts';
import { isRepoName, isTagName } from '../domains/registry/repos/name-rules.ts';

/** The longest name that clients accept, without the host. */
const MAX_NAME = 255;

/** Splits a repository name into the names of organization, groups and repo. Refuses anything else, such as `..`. */
export function segmentsOf(name: string): readonly string[] {
  const segments = name.split('/');
  if (name.length > MAX_NAME || !segments.every(isRepoName)) {
    throw new RegistryError(
      'NAME_INVALID',
      `a repository name is <organization>/<group>/…/<repo>, at most ${MAX_NAME} lower-case letters, digits and single separators`,
    );
  }
  return segments;
}

export function requireDigest(text: string): string {
  if (toDigest(text) === undefined) {
    throw new RegistryError('DIGEST_INVALID', 'a digest is sha256: and 64, or sha512: and 128 hexadecimal digits');
  }
  return text;
}

export function requireTag(text: string): string {
  if (!isTagName(text)) {
    throw new RegistryError(
      'TAG_INVALID',
      'a tag has at most 128 letters, digits, ., _ and -, and does not begin with . or -',
    );
  }
  return text;
}
