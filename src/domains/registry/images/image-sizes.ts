import { batchPlaceholders, parameterBatches } from '../../../store/parameter-batches.ts';
import type { Reader } from '../../../store/store.ts';

const SIZES = `SELECT digest, content_size FROM manifest WHERE repo = $1 AND digest IN (${batchPlaceholders(2)})`;

/** How many bytes the configs and layers of images have, as far as the images are still there. */
export async function imageSizes(
  db: Reader,
  repo: string,
  digests: readonly string[],
): Promise<ReadonlyMap<string, number>> {
  const sizes = new Map<string, number>();
  for (const some of parameterBatches(digests)) {
    const rows = await db.all<{ digest: string; content_size: number }>(SIZES, repo, ...some);
    for (const { digest, content_size } of rows) sizes.set(digest, content_size);
  }
  return sizes;
}
