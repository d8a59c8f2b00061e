import { invalid, notFound } from '../../../base/errors.ts';
import type { Reader } from '../../../store/store.ts';
import { type Manifest, parseManifest } from '../manifests/manifest.ts';
import { findManifest } from '../manifests/manifests.ts';
import { digestRule } from '../tags/tags.ts';
import { DEFAULT_ARCHITECTURE, requirePlatforms } from './platforms.ts';

export interface ParsedManifest {
  readonly digest: string;
  readonly manifest: Manifest;
}

export async function requireParsedManifest(db: Reader, repo: string, digest: string): Promise<ParsedManifest> {
  const problem = digestRule(digest);
  if (problem) throw invalid('digest', problem);
  const stored = await findManifest(db, repo, digest);
  if (!stored) throw notFound('image', digest);
  return { digest, manifest: parseManifest(stored.bytes, stored.mediaType) };
}

/** Returns the manifest itself, or for an index that of its image for the architecture. */
export async function requireImageForArchitecture(
  db: Reader,
  repo: string,
  digest: string,
  requestedArchitecture: string,
): Promise<ParsedManifest> {
  const found = await requireParsedManifest(db, repo, digest);
  if (found.manifest.kind !== 'index') return found;
  const architecture = requestedArchitecture || DEFAULT_ARCHITECTURE;
  for (const child of found.manifest.manifests) {
    // The platform of a child is in the index, or else in the config of the child.
    const platforms = child.platform ? [child.platform] : await requirePlatforms(db, repo, child.digest);
    if (platforms.some((platform) => platform.architecture === architecture)) {
      return requireParsedManifest(db, repo, child.digest);
    }
  }
  throw notFound('image', `${digest} for ${architecture}`);
}
