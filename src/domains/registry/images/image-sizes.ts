import { batchPlaceholders, parameterBatches } from '../../../store/parameter-batches.ts';
import type { Reader } from '../../../store/store.ts';

const FIND_SIZES = `SELECT digest, content_size FROM manifest WHERE repo = $1 AND digest IN (${batchPlaceholders(2)})`;

/** The sizes of images in bytes, config and layers, by digest. Images that do not exist are left out. */
export async function findImageSizes(
  db: Reader,
  repo: string,
  digests: readonly string[],
): Promise<ReadonlyMap<string, number>> {
  const sizes = new Map<string, number>();
  for (const some of parameterBatches(digests)) {
    const rows = await db.all<{ digest: string; content_size: number }>(FIND_SIZES, repo, ...some);
    for (const { digest, content_size } of rows) sizes.set(digest, content_size);
  }
  return sizes;
}
