import type { BlobReader, Blobs } from '../../../blobs/blobs.ts';
import { BlobError } from '../../../blobs/errors.ts';
import type { Reader } from '../../../store/store.ts';
import { findBlobLink } from './blob-links.ts';

/**
 * Reads a blob into memory. Returns undefined when the repo does not link it, it has more than `limit` bytes, or its file
 * is lost or has the wrong size.
 */
export type ReadBlob = (db: Reader, repo: string, digest: string, limit: number) => Promise<Buffer | undefined>;

export const createBlobReader =
  (blobs: Pick<Blobs, 'open'>): ReadBlob =>
  async (db, repo, digest, limit) => {
    const link = await findBlobLink(db, repo, digest);
    if (!link || link.size > limit) return undefined;
    const chunks: Uint8Array[] = [];
    const reader = await openUnlessLost(blobs, digest);
    if (!reader) return undefined;
    if (reader.size !== link.size) {
      await reader.close();
      return undefined;
    }
    // The reader reuses the memory of a chunk, so each one is copied.
    await reader.copyTo(async (chunk) => void chunks.push(Buffer.from(chunk)));
    return Buffer.concat(chunks);
  };

async function openUnlessLost(blobs: Pick<Blobs, 'open'>, digest: string): Promise<BlobReader | undefined> {
  try {
    return await blobs.open(digest);
  } catch (error) {
    if (error instanceof BlobError && error.reason === 'unknown') return undefined;
    throw error;
  }
}
