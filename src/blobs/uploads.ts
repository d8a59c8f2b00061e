import { createHash, type Hash, randomUUID } from 'node:crypto';
import { type FileHandle, open, opendir, rm, stat, unlink } from 'node:fs/promises';
import { Readable } from 'node:stream';
import type { Clock } from '../base/clock.ts';
import { createLru } from '../base/lru.ts';
import type { Blobs } from './blobs.ts';
import { copyRange } from './copy-range.ts';
import { type Algorithm, type Digest, formatDigest, parseDigest } from './digest.ts';
import { asBlobError, BlobError, unlessMissing } from './errors.ts';
import { createHashingWriter } from './hashing-writer.ts';
import type { Layout } from './layout.ts';
import type { UploadLocks } from './upload-locks.ts';

export interface UploadOptions {
  readonly layout: Layout;
  readonly clock: Clock;
  readonly cachedHashes: number;
  readonly locks: UploadLocks;
  /** Renames a complete and synced file to the file of a blob. */
  publish(path: string, digest: Digest): Promise<void>;
}

export type Uploads = Pick<Blobs, 'begin' | 'append' | 'offset' | 'finish' | 'cancel' | 'uploads'>;

/**
 * The algorithm by which chunks are hashed as they arrive. A client names its algorithm only at the end. It is nearly
 * always this one; for another one the file is read again.
 */
const EXPECTED_ALGORITHM: Algorithm = 'sha256';

const UPLOAD_ID = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

/** Errors after which the upload is deleted: its content is unknown or wrong. Deleting it also frees a full disk. */
const FATAL = new Set<string>(['mismatch', 'full', 'failed']);

export function createUploads({ layout, clock, cachedHashes, locks, publish }: UploadOptions): Uploads {
  // The state of a hash cannot be stored, so it is kept in memory between two requests. After a restart, or if it was
  // evicted, the file is read again. `size` is the number of hashed bytes: a hash is used only if it covers the whole
  // file.
  const hashes = createLru<string, { hash: Hash; size: number }>(cachedHashes);

  /** Only one request at a time can write to an upload, over all processes. */
  async function withLock<T>(id: string, work: (path: string) => Promise<T>): Promise<T> {
    const result = await locks.tryRun(id, () => work(layout.upload(id)));
    if (result === undefined) throw new BlobError({ reason: 'busy' });
    return result.value;
  }

  async function withFile<T>(id: string, work: (file: FileHandle, size: number) => Promise<T>): Promise<T> {
    const unknown = new BlobError({ reason: 'unknown', kind: 'upload' });
    if (!UPLOAD_ID.test(id)) throw unknown;
    return withLock(id, async (path) => {
      const file = await unlessMissing(open(path, 'r+'));
      if (file === undefined) throw unknown;
      try {
        const { size } = await file.stat();
        return await deleteIfFatal(path, work(file, size));
      } finally {
        await file.close();
      }
    });
  }

  async function deleteIfFatal<T>(path: string, work: Promise<T>): Promise<T> {
    try {
      return await work;
    } catch (cause) {
      const error = asBlobError(cause);
      // If this fails too, garbage collection deletes the upload later.
      if (error instanceof BlobError && FATAL.has(error.reason)) await rm(path).catch(() => {});
      throw error;
    }
  }

  async function hashOf(file: FileHandle, size: number, algorithm: Algorithm, id: string): Promise<Hash> {
    const cached = hashes.get(id);
    hashes.delete(id);
    if (cached?.size === size && algorithm === EXPECTED_ALGORITHM) return cached.hash;
    const hash = createHash(algorithm);
    await copyRange(file, 0, size, async (chunk) => void hash.update(chunk));
    return hash;
  }

  return {
    async begin() {
      const id = randomUUID();
      const file = await open(layout.upload(id), 'wx', 0o600);
      await file.close();
      return id;
    },

    append: (id, offset, source, { limit = Infinity, done } = {}) =>
      withFile(id, async (file, size) => {
        if (offset !== size) throw new BlobError({ reason: 'offset', offset: size });
        const hash = await hashOf(file, size, EXPECTED_ALGORITHM, id);
        const writer = createHashingWriter(file, size, hash, done);
        let failure: BlobError | undefined;
        const onInterrupted = (cause: unknown): void => {
          failure = new BlobError({ reason: 'interrupted', offset: writer.end }, cause);
        };
        for await (const chunk of chunksOf(source, onInterrupted)) {
          if (writer.end + chunk.length > limit) {
            failure = new BlobError({ reason: 'large', limit });
            break;
          }
          await writer.write(chunk);
        }
        await writer.flush();
        hashes.set(id, { hash, size: writer.end });
        if (failure !== undefined) throw failure;
        return writer.end;
      }),

    async offset(id) {
      if (!UPLOAD_ID.test(id)) return undefined;
      return (await unlessMissing(stat(layout.upload(id))))?.size;
    },

    async finish(id, text) {
      const digest = parseDigest(text);
      return withFile(id, async (file, size) => {
        const { algorithm } = digest;
        const hex = (await hashOf(file, size, algorithm, id)).digest('hex');
        if (hex !== digest.hex) {
          throw new BlobError({ reason: 'mismatch', expected: text, actual: formatDigest({ algorithm, hex }) });
        }
        // Garbage collection deletes old blobs. The last append may be long ago, so the blob gets the current time.
        const now = new Date(clock());
        await file.utimes(now, now);
        await file.sync();
        await publish(layout.upload(id), digest);
        return { size };
      });
    },

    async cancel(id, { before } = { before: Infinity }) {
      if (!UPLOAD_ID.test(id)) return false;
      return withLock(id, async (path) => {
        if (before !== Infinity && ((await unlessMissing(stat(path)))?.mtimeMs ?? 0) >= before) return false;
        hashes.delete(id);
        return (await unlessMissing(unlink(path).then(() => true))) ?? false;
      });
    },

    async *uploads() {
      for await (const { name: id } of await opendir(layout.uploads)) {
        const found = UPLOAD_ID.test(id) ? await unlessMissing(stat(layout.upload(id))) : undefined;
        if (found !== undefined) yield { id, size: found.size, changed: Math.round(found.mtimeMs) };
      }
    },
  };
}

/** Yields the chunks of the source. If the source fails, calls `onInterrupted` and ends. */
async function* chunksOf(
  source: AsyncIterable<Uint8Array>,
  onInterrupted: (cause: unknown) => void,
): AsyncGenerator<Uint8Array> {
  try {
    yield* source instanceof Readable ? source.iterator({ destroyOnReturn: false }) : source;
  } catch (cause) {
    onInterrupted(cause);
  }
}
