import { createHash } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import type { BlobEntry, Blobs } from './blobs.ts';
import { parseDigest } from './digest.ts';
import { BlobError } from './errors.ts';

/** What is wrong with a blob: its bytes do not have its digest, or the disk cannot read them. */
export type BlobProblem = 'damaged' | 'unreadable';

/** A blob that was read completely and compared with its digest. */
export interface VerifiedBlob extends BlobEntry {
  /** Undefined if the blob is intact. */
  readonly problem: BlobProblem | undefined;
}

export interface VerifyOptions {
  /** Begins after this digest, to resume an earlier verification. */
  readonly after?: string | undefined;
  /** The most bytes to read per second. Unlimited by default. */
  readonly bytesPerSecond?: number | undefined;
  /** Ends the verification. The blob that is being read is not yielded. */
  readonly signal?: AbortSignal | undefined;
  /** Called with the number of bytes after each chunk. */
  readonly onRead?: ((bytes: number) => void) | undefined;
}

/**
 * Reads all blobs in the order of their digests and compares each with its digest. The server can be running. Blobs that
 * are deleted meanwhile are skipped. The thread hashes one chunk at a time, which takes about half a millisecond.
 */
export async function* verifyBlobs(
  blobs: Pick<Blobs, 'list' | 'open'>,
  options: VerifyOptions = {},
): AsyncGenerator<VerifiedBlob> {
  const pace = createPace(options);
  for await (const entry of blobs.list(options.after)) {
    const verified = await verify(blobs, entry, pace);
    if (options.signal?.aborted) return;
    if (verified) yield verified;
  }
}

/** Verifies one blob. Returns undefined if it does not exist. */
export const verifyBlob = (
  blobs: Pick<Blobs, 'open'>,
  entry: BlobEntry,
  options: VerifyOptions = {},
): Promise<VerifiedBlob | undefined> => verify(blobs, entry, createPace(options));

type Pace = (bytes: number) => Promise<void>;

async function verify(blobs: Pick<Blobs, 'open'>, entry: BlobEntry, pace: Pace): Promise<VerifiedBlob | undefined> {
  const { algorithm, hex } = parseDigest(entry.digest);
  const hash = createHash(algorithm);
  try {
    const reader = await blobs.open(entry.digest);
    await reader.copyTo(async (chunk) => {
      hash.update(chunk);
      await pace(chunk.length);
    });
  } catch (error) {
    if (error === STOPPED) return undefined;
    if (!(error instanceof BlobError)) throw error;
    return error.reason === 'unknown' ? undefined : { ...entry, problem: 'unreadable' };
  }
  return { ...entry, problem: hash.digest('hex') === hex ? undefined : 'damaged' };
}

const STOPPED = new Error('the verification was ended');

/** Waits after each chunk until the rate permits the next one. The first second is not saved up during pauses. */
function createPace({ bytesPerSecond = Infinity, signal, onRead }: VerifyOptions): Pace {
  let allowedAt = performance.now();
  return async (bytes) => {
    if (signal?.aborted) throw STOPPED;
    onRead?.(bytes);
    if (bytesPerSecond === Infinity) return;
    const now = performance.now();
    allowedAt = Math.max(allowedAt, now - 1000) + (bytes * 1000) / bytesPerSecond;
    if (allowedAt <= now) return;
    try {
      await sleep(allowedAt - now, undefined, { signal });
    } catch {
      throw STOPPED;
    }
  };
}
