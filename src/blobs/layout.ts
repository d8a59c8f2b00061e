import { mkdir, open } from 'node:fs/promises';
import { join } from 'node:path';
import { type Algorithm, algorithms, type Digest } from './digest.ts';

/** The first two digits of a digest: a million blobs make directories of four thousand. */
export const shards = Array.from({ length: 256 }, (_, byte) => byte.toString(16).padStart(2, '0'));

/** Where things are: `blobs/sha256/ab/<hex>`, `uploads/<id>` and, while somebody works on it, `locks/<id>`. */
export interface Layout {
  readonly uploads: string;
  upload(id: string): string;
  readonly locks: string;
  lock(id: string): string;
  blob(digest: Digest): string;
  shard(algorithm: Algorithm, shard: string): string;
  /** Makes the directory of this blob, and resolves when no power cut can take it back. */
  makeShard(digest: Digest): Promise<void>;
}

export async function createLayout(root: string): Promise<Layout> {
  const uploads = join(root, 'uploads');
  const locks = join(root, 'locks');
  const blobs = join(root, 'blobs');
  for (const algorithm of algorithms) await makeDirectory(join(blobs, algorithm));
  await makeDirectory(uploads);
  await makeDirectory(locks);
  for (const parent of [blobs, root]) await syncDirectory(parent);

  const shard = (algorithm: Algorithm, name: string): string => join(blobs, algorithm, name);
  const shardOf = ({ algorithm, hex }: Digest): string => shard(algorithm, hex.slice(0, 2));

  // Also one that is there is made durable once: the server that made it may have died before it was.
  const durable = new Map<string, Promise<void>>();
  async function makeDurable(path: string, parent: string): Promise<void> {
    try {
      await makeDirectory(path);
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
    shard,
    makeShard(digest) {
      const path = shardOf(digest);
      const made = durable.get(path) ?? makeDurable(path, join(blobs, digest.algorithm));
      durable.set(path, made);
      return made;
    },
  };
}

const makeDirectory = (path: string): Promise<unknown> => mkdir(path, { recursive: true, mode: 0o700 });

/** A name is durable only when the directory that holds it is. */
export async function syncDirectory(path: string): Promise<void> {
  const directory = await open(path);
  try {
    await directory.sync();
  } finally {
    await directory.close();
  }
}
