import { createHash } from 'node:crypto';
import { Readable, type Transform } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { constants, createZstdCompress, createZstdDecompress } from 'node:zlib';

/** Compresses with Zstandard. Level 3 takes about a second for 300 MB of a database. */
export const compress = (source: AsyncIterable<Uint8Array>): AsyncIterable<Uint8Array> =>
  through(source, createZstdCompress({ params: { [constants.ZSTD_c_compressionLevel]: 3 } }));

export const decompress = (source: AsyncIterable<Uint8Array>): AsyncIterable<Uint8Array> =>
  through(source, createZstdDecompress());

async function* through(source: AsyncIterable<Uint8Array>, transform: Transform): AsyncGenerator<Uint8Array> {
  // An error of the source destroys the transform, so that its reader gets the error.
  const done = pipeline(Readable.from(source, { objectMode: false }), transform);
  done.catch(() => {});
  yield* transform;
  // A decompressor ends with the compressed data. If the source has more, its checksum is wrong, and it throws only now.
  await done;
}

/** The size and the digest of what was read so far. */
export interface Meter {
  readonly size: number;
  readonly sha256: string;
}

/** Passes the chunks of a source on, and calls `onEnd` with their size and digest before the end is passed on. */
export async function* measured(
  source: AsyncIterable<Uint8Array>,
  onEnd: (meter: Meter) => void,
): AsyncGenerator<Uint8Array> {
  const hash = createHash('sha256');
  let size = 0;
  for await (const chunk of source) {
    hash.update(chunk);
    size += chunk.length;
    yield chunk;
  }
  onEnd({ size, sha256: hash.digest('hex') });
}

/** Calls `work` for the items of a source, `count` at a time. After a failure, waits for those that are running. */
export async function forEachConcurrently<T>(
  items: AsyncIterable<T>,
  count: number,
  work: (item: T) => Promise<void>,
): Promise<void> {
  const running = new Set<Promise<void>>();
  let failure: { readonly error: unknown } | undefined;
  try {
    for await (const item of items) {
      const task: Promise<void> = work(item)
        .catch((error: unknown) => {
          failure ??= { error };
        })
        .finally(() => running.delete(task));
      running.add(task);
      if (running.size >= count) await Promise.race(running);
      if (failure) break;
    }
  } finally {
    await Promise.all(running);
  }
  if (failure) throw failure.error;
}
