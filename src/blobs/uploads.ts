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
  readonly liveHashes: number;
  readonly locked: UploadLocks;
  /** Makes a file that is complete and durable visible as a blob. */
  place(path: string, digest: Digest): Promise<void>;
}

export type Uploads = Pick<Blobs, 'begin' | 'append' | 'offset' | 'finish' | 'cancel' | 'uploads'>;

/** Clients nearly always want this one, and say so only at the end; another is computed by reading the file again. */
const LIVE_ALGORITHM: Algorithm = 'sha256';

const UPLOAD_ID = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

/** After these, nobody knows what the file holds; and on a full disk, its space is what the server needs next. */
const FATAL = new Set<string>(['mismatch', 'full', 'failed']);

export function createUploads({ layout, clock, liveHashes, locked, place }: UploadOptions): Uploads {
  // The state of a hash cannot be stored, so it lives here between two requests; after a restart, or when it had to make
  // room, the bytes so far are read again. `size` tells whether it stands for all that is in the file.
  const live = createLru<string, { hash: Hash; size: number }>(liveHashes);

  /** One request at a time works on an upload, whichever process it came to. */
  async function alone<T>(id: string, work: (path: string) => Promise<T>): Promise<T> {
    const done = await locked(id, () => work(layout.upload(id)));
    if (done === undefined) throw new BlobError({ reason: 'busy' });
    return done.value;
  }

  async function edit<T>(id: string, work: (file: FileHandle, size: number) => Promise<T>): Promise<T> {
    const unknown = new BlobError({ reason: 'unknown', kind: 'upload' });
    if (!UPLOAD_ID.test(id)) throw unknown;
    return alone(id, async (path) => {
      const file = await unlessMissing(open(path, 'r+'));
      if (file === undefined) throw unknown;
      try {
        const { size } = await file.stat();
        return await orDrop(path, work(file, size));
      } finally {
        await file.close();
      }
    });
  }

  async function orDrop<T>(path: string, work: Promise<T>): Promise<T> {
    try {
      return await work;
    } catch (cause) {
      const error = asBlobError(cause);
      // Should this fail too, the collector of stale uploads comes by later.
      if (error instanceof BlobError && FATAL.has(error.reason)) await rm(path).catch(() => {});
      throw error;
    }
  }

  async function hashOf(file: FileHandle, size: number, algorithm: Algorithm, id: string): Promise<Hash> {
    const known = live.get(id);
    live.delete(id);
    if (known?.size === size && algorithm === LIVE_ALGORITHM) return known.hash;
    const hash = createHash(algorithm);
    await copyRange(file, 0, size, async (piece) => void hash.update(piece));
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
      edit(id, async (file, size) => {
        if (offset !== size) throw new BlobError({ reason: 'offset', offset: size });
        const hash = await hashOf(file, size, LIVE_ALGORITHM, id);
        const writer = createHashingWriter(file, size, hash, done);
        let stopped: BlobError | undefined;
        const interrupted = (cause: unknown): void => {
          stopped = new BlobError({ reason: 'interrupted', offset: writer.end }, cause);
        };
        for await (const chunk of chunksOf(source, interrupted)) {
          if (writer.end + chunk.length > limit) {
            stopped = new BlobError({ reason: 'large', limit });
            break;
          }
          await writer.write(chunk);
        }
        await writer.flush();
        live.set(id, { hash, size: writer.end });
        if (stopped !== undefined) throw stopped;
        return writer.end;
      }),

    async offset(id) {
      if (!UPLOAD_ID.test(id)) return undefined;
      return (await unlessMissing(stat(layout.upload(id))))?.size;
    },

    async finish(id, text) {
      const digest = parseDigest(text);
      return edit(id, async (file, size) => {
        const { algorithm } = digest;
        const hex = (await hashOf(file, size, algorithm, id)).digest('hex');
        if (hex !== digest.hex) {
          throw new BlobError({ reason: 'mismatch', expected: text, actual: formatDigest({ algorithm, hex }) });
        }
        // The last append may be long ago, and a blob must not be born old: its age decides when it may be collected.
        const now = new Date(clock());
        await file.utimes(now, now);
        await file.sync();
        await place(layout.upload(id), digest);
        return { size };
      });
    },

    async cancel(id) {
      if (!UPLOAD_ID.test(id)) return false;
      return alone(id, async (path) => {
        live.delete(id);
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

/** The chunks up to the end or the failure of the source, which it reports and does not throw. */
async function* chunksOf(
  source: AsyncIterable<Uint8Array>,
  interrupted: (cause: unknown) => void,
): AsyncGenerator<Uint8Array> {
  try {
    yield* source instanceof Readable ? source.iterator({ destroyOnReturn: false }) : source;
  } catch (cause) {
    interrupted(cause);
  }
}
