import { toDigest } from '../blobs/digest.ts';
import { RegistryError } from '../domains/registry/errors.ts';
import { isRepoName, isTagName } from '../domains/registry/repos/names.ts';

/** As long as clients let a name be, without the host. */
const MAX_NAME = 255;

/** The names of the organization, the groups and the repo; nothing else gets past here, dots and escapes included. */
export function segmentsOf(name: string): readonly string[] {
  const segments = name.split('/');
  if (name.length > MAX_NAME || !segments.every(isRepoName)) {
    throw new RegistryError(
      'NAME_INVALID',
      `a name is <organization>/<group>/…/<repo> of at most ${MAX_NAME} lower-case letters, digits and single separators`,
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

/** What comes after `manifests/`. */
export type Reference = { readonly digest: string } | { readonly tag: string };

export function referenceOf(text: string): Reference {
  // No tag has a colon, and every digest has one.
  return text.includes(':') ? { digest: requireDigest(text) } : { tag: requireTag(text) };
}

export function requireTag(text: string): string {
  if (!isTagName(text)) {
    throw new RegistryError(
      'TAG_INVALID',
      'a tag is at most 128 letters, digits, ., _ and -, and begins with none of . and -',
    );
  }
  return text;
}
