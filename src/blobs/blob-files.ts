import { link, open, readdir, rename, stat, unlink } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { syncDirectory } from '../base/sync-directory.ts';
import type { BlobEntry, Blobs } from './blobs.ts';
import { algorithms, type Digest, formatDigest, parseDigest, toDigest } from './digest.ts';
import { BlobError, isErrno, unlessMissing } from './errors.ts';
import { createKeyedMutex } from './keyed-mutex.ts';
import { type Layout, shards } from './layout.ts';
import { createReader } from './reader.ts';

export interface BlobFiles extends Pick<Blobs, 'stat' | 'open' | 'list' | 'remove' | 'quarantine'> {
  /** Renames a complete and synced file to the file of a blob. The blob is durable when this resolves. */
  publish(path: string, digest: Digest): Promise<void>;
}

export function createBlobFiles(layout: Layout): BlobFiles {
  const mutex = createKeyedMutex();

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
      return mutex.run(digest, async () => {
        const found = await unlessMissing(stat(path));
        if (found === undefined || changedAt(found) >= before) return false;
        await unlink(path);
        return true;
      });
    },

    async quarantine({ digest, changed }) {
      const path = layout.blob(parseDigest(digest));
      const aside = await layout.quarantined(parseDigest(digest));
      return mutex.run(digest, async () => {
        const found = await unlessMissing(stat(path));
        if (found === undefined || changedAt(found) !== changed) return false;
        await rename(path, aside);
        // Another process may have replaced the blob by an intact one in between. Then that one is put back.
        const isDamaged = changedAt(await stat(aside)) === changed;
        if (!isDamaged) {
          await link(aside, path).catch(unlessExists);
          await unlink(aside);
        }
        await syncDirectory(dirname(path));
        return isDamaged;
      });
    },

    // Replaces a blob that exists by the same bytes with a newer time. If the upload were discarded instead, a
    // concurrent `remove` could delete the only copy.
    publish: (path, digest) =>
      mutex.run(formatDigest(digest), async () => {
        const target = layout.blob(digest);
        await layout.createShard(digest);
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
    if (found !== undefined) yield { digest, size: found.size, changed: changedAt(found) };
  }
}

function unlessExists(error: unknown): void {
  if (!isErrno(error) || error.code !== 'EEXIST') throw error;
}

/** Rounded, because the file system stores fractions of a millisecond. */
const changedAt = ({ mtimeMs }: { mtimeMs: number }): number => Math.round(mtimeMs);
