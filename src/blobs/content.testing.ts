import { createHash } from 'node:crypto';
import type { Blobs } from './blobs.ts';
import type { Algorithm } from './digest.ts';
import type { BlobFailure } from './errors.ts';

export const digestOf = (content: Uint8Array, algorithm: Algorithm = 'sha256'): string =>
  `${algorithm}:${createHash(algorithm).update(content).digest('hex')}`;

/** Bytes that follow from the seed alone, so that another process can tell what they must be. */
export function bytes(length: number, seed = 1): Buffer {
  const content = Buffer.allocUnsafe(length);
  let state = seed | 1;
  for (let at = 0; at < length; at++) {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) | 0;
    content[at] = state >>> 24;
  }
  return content;
}

/** The content as a source: in chunks of these sizes, over and over; one that fails after all of them when asked to. */
export async function* chunked(content: Uint8Array, sizes: readonly number[] = [65_536], failure?: Error) {
  for (let at = 0, turn = 0; at < content.length; turn++) {
    const size = sizes[turn % sizes.length] ?? 1;
    yield content.subarray(at, at + size);
    at += size;
  }
  if (failure !== undefined) throw failure;
}

export async function push(blobs: Blobs, content: Uint8Array, digest = digestOf(content)): Promise<string> {
  const id = await blobs.begin();
  await blobs.append(id, 0, chunked(content));
  await blobs.finish(id, digest);
  return digest;
}

export async function pull(blobs: Blobs, digest: string, range?: { start: number; end: number }): Promise<Buffer> {
  const pieces: Uint8Array[] = [];
  const reader = await blobs.open(digest, range);
  // A piece is only lent, hence the copy.
  await reader.copyTo(async (piece) => void pieces.push(Buffer.from(piece)));
  return Buffer.concat(pieces);
}

export async function all<T>(items: AsyncIterable<T>): Promise<T[]> {
  const found: T[] = [];
  for await (const item of items) found.push(item);
  return found;
}

/** For assert.rejects: a BlobError with exactly this failure. */
export const failing = (failure: BlobFailure) => ({ name: 'BlobError', failure });
