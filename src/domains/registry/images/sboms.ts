import { notFound, precondition } from '../../../base/errors.ts';
import { readSbom, type Sbom } from '../../../formats/sbom/sbom.ts';
import { parseJson } from '../manifests/json.ts';
import { type Descriptor, type Manifest, parseManifest } from '../manifests/manifest.ts';
import { findManifest, findTagged, type StoredManifest } from '../manifests/manifests.ts';
import { referrers } from '../manifests/referrers.ts';
import { requireImageFor } from './find-image.ts';
import type { ImageSource } from './image-config.ts';

/** A bill of materials that is attached to an image. */
export interface AttachedSbom {
  /** The digest of its bytes. */
  readonly digest: string;
  /** The image that it is about. */
  readonly subject: string;
  readonly bytes: Buffer;
  /** What it says; undefined when it is in a form that only its maker reads. */
  readonly content: Sbom | undefined;
}

/** `application/spdx+json`, `text/spdx`, `application/vnd.cyclonedx+json` and the like. */
const SBOM = /\b(?:spdx|cyclonedx)\b/i;

const MAX_BYTES = 16 * 1024 * 1024;
/** Signatures and attestations are referrers too; more than this nobody attaches. */
const MAX_REFERRERS = 100;

/** The bill of an image; of an index its own, or else that of the image for an architecture. */
export async function findSbom(
  source: ImageSource,
  repo: string,
  digest: string,
  architecture: string,
): Promise<AttachedSbom | undefined> {
  const image = await requireImageFor(source.db, repo, digest, architecture);
  for (const subject of new Set([digest, image.digest])) {
    const found = await attachedTo(source, repo, subject);
    if (found) return found;
  }
  return undefined;
}

export async function requireSbom(...asked: Parameters<typeof findSbom>): Promise<AttachedSbom> {
  const found = await findSbom(...asked);
  if (!found) throw notFound('sbom', asked[2]);
  return found;
}

async function attachedTo({ db, read }: ImageSource, repo: string, subject: string): Promise<AttachedSbom | undefined> {
  for await (const stored of candidates(db, repo, subject)) {
    const layer = sbomLayer(parseManifest(stored.bytes, stored.mediaType));
    if (!layer) continue;
    if (layer.size > MAX_BYTES) {
      const problem = `the bill of materials has more than ${MAX_BYTES} bytes; pull ${stored.digest} instead`;
      throw precondition('SBOM_TOO_LARGE', subject, problem);
    }
    const bytes = await read(db, repo, layer.digest, MAX_BYTES);
    if (bytes) return { digest: layer.digest, subject, bytes, content: understood(bytes) };
  }
  return undefined;
}

async function* candidates(db: ImageSource['db'], repo: string, subject: string): AsyncGenerator<StoredManifest> {
  for (const { digest } of await referrers(db, repo, subject, { limit: MAX_REFERRERS })) {
    const stored = await findManifest(db, repo, digest);
    if (stored) yield stored;
  }
  // Where cosign puts a bill in registries without referrers.
  const tagged = await findTagged(db, repo, `${subject.replace(':', '-')}.sbom`);
  if (tagged) yield tagged;
}

/** By its own type, or the only one of such an artifact. */
function sbomLayer({ artifactType = '', layers }: Manifest): Descriptor | undefined {
  const typed = layers.find(({ mediaType }) => SBOM.test(mediaType));
  return typed ?? (SBOM.test(artifactType) && layers.length === 1 ? layers[0] : undefined);
}

function understood(bytes: Uint8Array): Sbom | undefined {
  try {
    return readSbom(parseJson(bytes));
  } catch {
    return undefined;
  }
}
