import { invalid, notFound } from '../../../base/errors.ts';
import type { Reader } from '../../../store/store.ts';
import { type Manifest, parseManifest } from '../manifests/manifest.ts';
import { findManifest } from '../manifests/manifests.ts';
import { digestRule } from '../tags/tags.ts';
import { DEFAULT_ARCHITECTURE, platformsOf } from './platforms.ts';

/** A manifest, taken apart. */
export interface FoundManifest {
  readonly digest: string;
  readonly manifest: Manifest;
}

export async function requireParsed(db: Reader, repo: string, digest: string): Promise<FoundManifest> {
  const problem = digestRule(digest);
  if (problem) throw invalid('digest', problem);
  const stored = await findManifest(db, repo, digest);
  if (!stored) throw notFound('image', digest);
  return { digest, manifest: parseManifest(stored.bytes, stored.mediaType) };
}

/** The image itself, or the one of an index for this architecture. */
export async function requireImageFor(
  db: Reader,
  repo: string,
  digest: string,
  architecture: string,
): Promise<FoundManifest> {
  const found = await requireParsed(db, repo, digest);
  if (found.manifest.kind !== 'index') return found;
  const wanted = architecture || DEFAULT_ARCHITECTURE;
  for (const child of found.manifest.manifests) {
    // An index says itself what its children run on; where it does not, they do.
    const platforms = child.platform ? [child.platform] : await platformsOf(db, repo, child.digest);
    if (platforms.some((platform) => platform.architecture === wanted)) return requireParsed(db, repo, child.digest);
  }
  throw notFound('image', `${digest} for ${wanted}`);
}
