import { notFound, precondition } from '../../../base/errors.ts';
import type { Sbom } from '../../../formats/sbom/sbom.ts';
import { type Descriptor, type Manifest, parseManifest } from '../manifests/manifest.ts';
import { findManifest, findTagged, type StoredManifest } from '../manifests/manifests.ts';
import { findReferrers } from '../manifests/referrers.ts';
import { requireImageForArchitecture } from './find-image.ts';
import type { ImageReader } from './image-config.ts';
import { readSbomInBackground } from './read-sbom-in-background.ts';

/** An SBOM (software bill of materials) that is attached to an image. */
export interface AttachedSbom {
  /** The digest of `bytes`. */
  readonly digest: string;
  /** The digest of the image that it describes. */
  readonly subject: string;
  readonly bytes: Buffer;
  /** The parsed SBOM; undefined when its format is not supported. */
  readonly content: Sbom | undefined;
}

/** `application/spdx+json`, `text/spdx`, `application/vnd.cyclonedx+json` and the like. */
const SBOM_TYPE = /\b(?:spdx|cyclonedx)\b/i;

const MAX_BYTES = 16 * 1024 * 1024;
/** How many referrers are searched for an SBOM. Signatures and attestations are referrers too. */
const MAX_REFERRERS = 100;

/** The SBOM of an image. For an index it is the SBOM of the index, or else that of its image for the architecture. */
export async function findSbom(
  reader: ImageReader,
  repo: string,
  digest: string,
  architecture: string,
): Promise<AttachedSbom | undefined> {
  const image = await requireImageForArchitecture(reader.db, repo, digest, architecture);
  for (const subject of new Set([digest, image.digest])) {
    const found = await findAttached(reader, repo, subject);
    if (found) return found;
  }
  return undefined;
}

export async function requireSbom(
  reader: ImageReader,
  repo: string,
  digest: string,
  architecture: string,
): Promise<AttachedSbom> {
  const found = await findSbom(reader, repo, digest, architecture);
  if (!found) throw notFound('sbom', digest);
  return found;
}

async function findAttached(
  { db, readBlob }: ImageReader,
  repo: string,
  subject: string,
): Promise<AttachedSbom | undefined> {
  for await (const stored of candidates(db, repo, subject)) {
    const layer = sbomLayer(parseManifest(stored.bytes, stored.mediaType));
    if (!layer) continue;
    if (layer.size > MAX_BYTES) {
      const problem = `the SBOM has more than ${MAX_BYTES} bytes; pull ${stored.digest} instead`;
      throw precondition('SBOM_TOO_LARGE', subject, problem);
    }
    const bytes = await readBlob(db, repo, layer.digest, MAX_BYTES);
    if (bytes) return { digest: layer.digest, subject, bytes, content: await readSbomInBackground(bytes) };
  }
  return undefined;
}

async function* candidates(db: ImageReader['db'], repo: string, subject: string): AsyncGenerator<StoredManifest> {
  for (const { digest } of await findReferrers(db, repo, subject, { limit: MAX_REFERRERS })) {
    const stored = await findManifest(db, repo, digest);
    if (stored) yield stored;
  }
  // In registries without referrers, cosign stores an SBOM under this tag.
  const tagged = await findTagged(db, repo, `${subject.replace(':', '-')}.sbom`);
  if (tagged) yield tagged;
}

/** The layer whose media type is that of an SBOM, or the only layer of an artifact of such a type. */
function sbomLayer({ artifactType = '', layers }: Manifest): Descriptor | undefined {
  const typed = layers.find(({ mediaType }) => SBOM_TYPE.test(mediaType));
  return typed ?? (SBOM_TYPE.test(artifactType) && layers.length === 1 ? layers[0] : undefined);
}
