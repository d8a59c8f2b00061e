import { open, readdir, rename, stat, unlink } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import type { BlobEntry, Blobs } from './blobs.ts';
import { algorithms, type Digest, formatDigest, parseDigest, toDigest } from './digest.ts';
import { BlobError, unlessMissing } from './errors.ts';
import { createTurns } from './keyed-mutex.ts';
import { type Layout, shards, syncDirectory } from './layout.ts';
import { createReader } from './reader.ts';

export interface Stored extends Pick<Blobs, 'stat' | 'open' | 'list' | 'remove'> {
  /** Makes a file that is complete and durable visible as a blob, durable again when this resolves. */
  place(path: string, digest: Digest): Promise<void>;
}

export function createStored(layout: Layout): Stored {
  const inTurn = createTurns();

  return {
    async stat(digest) {
      const found = await unlessMissing(stat(layout.blob(parseDigest(digest))));
      return found && { size: found.size };
    },

    async open(digest, range) {
      const file = await unlessMissing(open(layout.blob(parseDigest(digest))));
      if (file === undefined) throw new BlobError({ reason: 'unknown', kind: 'blob' });
      try {
        const { size } = await file.stat();
        return createReader(file, size, range);
      } catch (error) {
        await file.close();
        throw error;
      }
    },

    async *list(after) {
      if (after !== undefined) parseDigest(after);
      for (const algorithm of algorithms) {
        for (const shard of shards) yield* listShard(layout.shard(algorithm, shard), `${algorithm}:`, shard, after);
      }
    },

    async remove(digest, { before } = { before: Infinity }) {
      const path = layout.blob(parseDigest(digest));
      return inTurn(digest, async () => {
        const found = await unlessMissing(stat(path));
        if (found === undefined || changed(found) >= before) return false;
        await unlink(path);
        return true;
      });
    },

    // A blob that is there already is replaced by the same bytes, and its time with it. Were the upload dropped instead, a
    // remove at the same moment would leave neither.
    place: (path, digest) =>
      inTurn(formatDigest(digest), async () => {
        const target = layout.blob(digest);
        await layout.makeShard(digest);
        await rename(path, target);
        await syncDirectory(dirname(target));
      }),
  };
}

async function* listShard(path: string, prefix: string, shard: string, after = ''): AsyncGenerator<BlobEntry> {
  if (`${prefix}${shard}` < after.slice(0, prefix.length + shard.length)) return;
  const names = await unlessMissing(readdir(path));
  for (const name of names?.sort() ?? []) {
    const digest = `${prefix}${name}`;
    if (digest <= after || toDigest(digest) === undefined) continue;
    const found = await unlessMissing(stat(join(path, name)));
    if (found !== undefined) yield { digest, size: found.size, changed: changed(found) };
  }
}

/** The file system keeps a fraction of it that a clock in milliseconds does not have. */
const changed = ({ mtimeMs }: { mtimeMs: number }): number => Math.round(mtimeMs);
