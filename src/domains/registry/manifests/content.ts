import type { Row } from '../../../store/store.ts';
import type { Manifest, Platform } from './manifest.ts';

/** What an image can run on, and how many bytes a client then fetches: config and layers, compressed as they are stored. */
export interface PlatformSize extends Platform {
  readonly size: number;
}

export interface Content {
  readonly size: number;
  readonly platforms: readonly PlatformSize[];
}

/** A child of an index, as it is stored. */
export interface ChildRow extends Row {
  readonly digest: string;
  readonly content_size: number;
  readonly platforms: string;
}

/** Indexes can hold indexes, each of which would multiply what is below it. */
const MAX_PLATFORMS = 256;

/** `sizes` are those of the blobs that the repo holds; a layer that is elsewhere is as large as the manifest says. */
export function imageContent(
  { config, layers }: Manifest,
  platform: Platform | undefined,
  sizes: ReadonlyMap<string, number>,
): Content {
  const parts = config ? [config, ...layers] : layers;
  const size = sum(parts.map((part) => sizes.get(part.digest) ?? part.size));
  return { size, platforms: platform ? [{ ...platform, size }] : [] };
}

/** An index says itself what its children run on; where it does not, they do. */
export function indexContent({ manifests }: Manifest, children: ReadonlyMap<string, ChildRow>): Content {
  const platforms = new Map<string, PlatformSize>();
  for (const { digest, platform } of manifests) {
    const child = children.get(digest);
    if (!child) continue;
    for (const one of platform ? [{ ...platform, size: child.content_size }] : platformsIn(child.platforms)) {
      const key = `${one.os}/${one.architecture}/${one.variant ?? ''}`;
      if (!platforms.has(key) && platforms.size < MAX_PLATFORMS) platforms.set(key, one);
    }
  }
  return { size: sum([...children.values()].map((child) => child.content_size)), platforms: [...platforms.values()] };
}

export const platformsIn = (column: string): readonly PlatformSize[] => JSON.parse(column);

/** Sizes of layers that are elsewhere are mere claims, so that their sum could be more than a column takes. */
const sum = (sizes: readonly number[]): number =>
  Math.min(
    sizes.reduce((total, size) => total + size, 0),
    Number.MAX_SAFE_INTEGER,
  );
