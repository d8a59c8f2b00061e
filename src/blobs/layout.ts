import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { syncDirectory } from '../base/sync-directory.ts';
import { type Algorithm, algorithms, type Digest, parseDigest } from './digest.ts';

/** The first two digits of a digest. With a million blobs, each directory has about four thousand. */
export const shards = Array.from({ length: 256 }, (_, byte) => byte.toString(16).padStart(2, '0'));

/**
 * The paths of files: `blobs/sha256/ab/<hex>`, `uploads/<id>`, `locks/<id>` while an upload is locked, and
 * `quarantine/sha256-<hex>` for damaged blobs.
 */
export interface Layout {
  readonly uploads: string;
  upload(id: string): string;
  readonly locks: string;
  lock(id: string): string;
  blob(digest: Digest): string;
  /** Where a damaged blob is moved to. Creates the directory. */
  quarantined(digest: Digest): Promise<string>;
  shard(algorithm: Algorithm, shard: string): string;
  /** Creates the directory of this blob. It is durable when this resolves. */
  createShard(digest: Digest): Promise<void>;
}

/** The path of the file of a blob below the directory `root`. */
export function blobPath(root: string, digest: string): string {
  const { algorithm, hex } = parseDigest(digest);
  return join(root, 'blobs', algorithm, hex.slice(0, 2), hex);
}

export async function createLayout(root: string): Promise<Layout> {
  const uploads = join(root, 'uploads');
  const locks = join(root, 'locks');
  const blobs = join(root, 'blobs');
  for (const algorithm of algorithms) await createDirectory(join(blobs, algorithm));
  await createDirectory(uploads);
  await createDirectory(locks);
  for (const parent of [blobs, root]) await syncDirectory(parent);

  const shard = (algorithm: Algorithm, name: string): string => join(blobs, algorithm, name);
  const shardOf = ({ algorithm, hex }: Digest): string => shard(algorithm, hex.slice(0, 2));

  // A directory that exists is synced once too: the process that created it may have been killed before it synced.
  const durable = new Map<string, Promise<void>>();
  async function createDurable(path: string, parent: string): Promise<void> {
    try {
      await createDirectory(path);
      await syncDirectory(parent);
    } catch (error) {
      durable.delete(path);
      throw error;
    }
  }

  return {
    uploads,
    upload: (id) => join(uploads, id),
    locks,
    lock: (id) => join(locks, id),
    blob: (digest) => join(shardOf(digest), digest.hex),
    async quarantined({ algorithm, hex }) {
      const quarantine = join(root, 'quarantine');
      await createDirectory(quarantine);
      return join(quarantine, `${algorithm}-${hex}`);
    },
    shard,
    createShard(digest) {
      const path = shardOf(digest);
      const created = durable.get(path) ?? createDurable(path, join(blobs, digest.algorithm));
      durable.set(path, created);
      return created;
    },
  };
}

const createDirectory = (path: string): Promise<unknown> => mkdir(path, { recursive: true, mode: 0o700 });
