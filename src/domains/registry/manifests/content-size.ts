import type { Row } from '../../../store/store.ts';
import type { Manifest, Platform } from './manifest.ts';

/** A platform of an image, and the bytes that a client downloads for it: config and layers, compressed as stored. */
export interface PlatformSize extends Platform {
  readonly size: number;
}

/** The size of what a manifest refers to, in total and by platform. */
export interface ContentSize {
  readonly size: number;
  readonly platforms: readonly PlatformSize[];
}

/** The row of a child manifest of an index. */
export interface ChildRow extends Row {
  readonly digest: string;
  readonly content_size: number;
  readonly platforms: string;
}

/** An index can contain indexes, so that the number of platforms could grow exponentially. */
const MAX_PLATFORMS = 256;

/** `sizes` has the blobs of the repo. A foreign layer is not among them, so its size is the one in the manifest. */
export function imageContentSize(
  { config, layers }: Manifest,
  platform: Platform | undefined,
  sizes: ReadonlyMap<string, number>,
): ContentSize {
  const blobs = config ? [config, ...layers] : layers;
  const size = sum(blobs.map((blob) => sizes.get(blob.digest) ?? blob.size));
  return { size, platforms: platform ? [{ ...platform, size }] : [] };
}

/** The platform of a child is in the index, or else in the row of the child. */
export function indexContentSize({ manifests }: Manifest, children: ReadonlyMap<string, ChildRow>): ContentSize {
  const platforms = new Map<string, PlatformSize>();
  for (const { digest, platform } of manifests) {
    const child = children.get(digest);
    if (!child) continue;
    for (const one of platform ? [{ ...platform, size: child.content_size }] : parsePlatforms(child.platforms)) {
      const key = `${one.os}/${one.architecture}/${one.variant ?? ''}`;
      if (!platforms.has(key) && platforms.size < MAX_PLATFORMS) platforms.set(key, one);
    }
  }
  return { size: sum([...children.values()].map((child) => child.content_size)), platforms: [...platforms.values()] };
}

export const parsePlatforms = (column: string): readonly PlatformSize[] => JSON.parse(column);

/** The sizes of foreign layers are not verified, so their sum could exceed what the column can store. */
const sum = (sizes: readonly number[]): number =>
  Math.min(
    sizes.reduce((total, size) => total + size, 0),
    Number.MAX_SAFE_INTEGER,
  );
