import type { Blobs } from '../../../blobs/blobs.ts';
import type { Reader } from '../../../store/store.ts';
import { findBlobLink } from './blob-links.ts';

/** Reads a blob into memory. Returns undefined when the repo does not link it or it has more than `limit` bytes. */
export type ReadBlob = (db: Reader, repo: string, digest: string, limit: number) => Promise<Buffer | undefined>;

export const createBlobReader =
  (blobs: Pick<Blobs, 'open'>): ReadBlob =>
  async (db, repo, digest, limit) => {
    const link = await findBlobLink(db, repo, digest);
    if (!link || link.size > limit) return undefined;
    const chunks: Uint8Array[] = [];
    const reader = await blobs.open(digest);
    // The reader reuses the memory of a chunk, so each one is copied.
    await reader.copyTo(async (chunk) => void chunks.push(Buffer.from(chunk)));
    return Buffer.concat(chunks);
  };
