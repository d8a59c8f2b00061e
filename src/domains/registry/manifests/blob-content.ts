import type { Blobs } from '../../../blobs/blobs.ts';
import type { Reader } from '../../../store/store.ts';
import { blobLink } from './blob-links.ts';

/** Reads a blob of a repo into memory; nothing when the repo has no such blob, or one of more than `limit` bytes. */
export type ReadContent = (db: Reader, repo: string, digest: string, limit: number) => Promise<Buffer | undefined>;

export const createContentReader =
  (blobs: Pick<Blobs, 'open'>): ReadContent =>
  async (db, repo, digest, limit) => {
    const link = await blobLink(db, repo, digest);
    if (!link || link.size > limit) return undefined;
    const pieces: Uint8Array[] = [];
    const reader = await blobs.open(digest);
    // A piece is only lent.
    await reader.copyTo(async (piece) => void pieces.push(Buffer.from(piece)));
    return Buffer.concat(pieces);
  };
