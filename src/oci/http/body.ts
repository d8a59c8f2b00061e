import type { IncomingMessage } from 'node:http';
import { bodyLengthOf } from '../../base/body-length.ts';
import { createByteCollector } from '../../base/byte-collector.ts';
import type { MemoryBudget } from '../../base/memory-budget.ts';
import { OciError } from '../errors.ts';

export const hasBody = (req: IncomingMessage): boolean => bodyLengthOf(req) !== 0;

/** Reads a body of at most `limit` bytes. A `budget` is for bodies whose senders are not authenticated. */
export async function readBody(req: IncomingMessage, limit: number, budget?: MemoryBudget): Promise<Buffer> {
  const length = bodyLengthOf(req);
  if ((length ?? 0) > limit) throw tooLarge(limit);
  const collector = createByteCollector();
  let charged = 0;
  try {
    // The request is not destroyed after an early exit, because the response uses the same socket.
    for await (const chunk of req.iterator({ destroyOnReturn: false }) as AsyncIterable<Buffer>) {
      if (collector.size + chunk.length > limit) throw tooLarge(limit);
      collector.add(chunk);
      if (budget === undefined || collector.size === length) continue;
      charged += chunk.length;
      budget.charge(chunk.length);
      if (budget.isExceeded) throw tooManyBodies();
    }
  } catch (error) {
    throw error instanceof OciError ? error : new OciError('SIZE_INVALID', 'the body ended early', { status: 408 });
  } finally {
    budget?.release(charged);
  }
  return collector.bytes();
}

const tooLarge = (limit: number): OciError =>
  new OciError('SIZE_INVALID', `the body must not exceed ${limit} bytes`, { status: 413 });

const tooManyBodies = (): OciError =>
  new OciError('TOOMANYREQUESTS', 'the server is receiving too many requests that are not authenticated; try again', {
    headers: { 'retry-after': '1' },
  });

/**
 * Frees the memory of a chunk that is no longer used. To the garbage collector a chunk is a small object, although 64 KiB
 * belong to it, so a hundred megabytes would accumulate before it runs.
 */
export function freeChunk({ buffer, byteOffset, byteLength }: Uint8Array): void {
  // Memory that is shared with other chunks cannot be freed.
  if (buffer instanceof ArrayBuffer && byteOffset === 0 && byteLength === buffer.byteLength) buffer.transfer(0);
}

/**
 * The chunks of a body. The whole may take any time, but the next chunk must arrive within `stallMs`. The time that the
 * consumer takes does not count.
 */
export async function* bodyChunks(req: IncomingMessage, stallMs: number): AsyncGenerator<Buffer> {
  const stop = (): void => void req.destroy(new Error(`no byte arrived for ${stallMs} ms`));
  let timer = setTimeout(stop, stallMs);
  try {
    for await (const chunk of req.iterator({ destroyOnReturn: false }) as AsyncIterable<Buffer>) {
      clearTimeout(timer);
      yield chunk;
      timer = setTimeout(stop, stallMs);
    }
  } finally {
    clearTimeout(timer);
  }
}
