import { createHash } from 'node:crypto';
import type { Blobs } from './blobs.ts';
import type { Algorithm } from './digest.ts';
import type { BlobFailure } from './errors.ts';

export const digestOf = (content: Uint8Array, algorithm: Algorithm = 'sha256'): string =>
  `${algorithm}:${createHash(algorithm).update(content).digest('hex')}`;

/** Returns bytes that depend on the seed only, so that another process can compute them too. */
export function bytes(length: number, seed = 1): Buffer {
  const content = Buffer.allocUnsafe(length);
  let state = seed | 1;
  for (let at = 0; at < length; at++) {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) | 0;
    content[at] = state >>> 24;
  }
  return content;
}

/** Yields the content in chunks, whose sizes repeat `sizes`. Then throws `failure`, if it is given. */
export async function* chunked(content: Uint8Array, sizes: readonly number[] = [65_536], failure?: Error) {
  for (let at = 0, count = 0; at < content.length; count++) {
    const size = sizes[count % sizes.length] ?? 1;
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
  const chunks: Uint8Array[] = [];
  const reader = await blobs.open(digest, range);
  // Copied, because the memory of a chunk is reused.
  await reader.copyTo(async (chunk) => void chunks.push(Buffer.from(chunk)));
  return Buffer.concat(chunks);
}

export async function all<T>(items: AsyncIterable<T>): Promise<T[]> {
  const collected: T[] = [];
  for await (const item of items) collected.push(item);
  return collected;
}

/** For assert.rejects: a BlobError with exactly this failure. */
export const failing = (failure: BlobFailure) => ({ name: 'BlobError', failure });
