import type { IncomingMessage } from 'node:http';
import { OciError } from '../errors.ts';

/** The declared length of a body; undefined when it comes in pieces of unknown number. */
export function lengthOf({ headers }: IncomingMessage): number | undefined {
  if (headers['transfer-encoding'] !== undefined) return undefined;
  return Number(headers['content-length'] ?? 0);
}

export const hasBody = (req: IncomingMessage): boolean => lengthOf(req) !== 0;

/** A body of at most `limit` bytes. */
export async function readBody(req: IncomingMessage, limit: number): Promise<Buffer> {
  const tooLarge = new OciError('SIZE_INVALID', `the body must not exceed ${limit} bytes`, { status: 413 });
  if ((lengthOf(req) ?? 0) > limit) throw tooLarge;
  const chunks: Buffer[] = [];
  let size = 0;
  try {
    // Not destroyed on leaving, because the answer goes out on its socket.
    for await (const chunk of req.iterator({ destroyOnReturn: false }) as AsyncIterable<Buffer>) {
      size += chunk.length;
      if (size > limit) throw tooLarge;
      chunks.push(chunk);
    }
  } catch (error) {
    throw error === tooLarge ? error : new OciError('SIZE_INVALID', 'the body broke off', { status: 408 });
  }
  return Buffer.concat(chunks, size);
}

/**
 * Frees the memory of a piece of a body that nobody reads any more. The collector sees a small object in front of 64 KiB,
 * and so would let a hundred megabytes of them gather before it comes by.
 */
export function free({ buffer, byteOffset, byteLength }: Uint8Array): void {
  // Memory that the piece shares with others is not its own to free.
  if (buffer instanceof ArrayBuffer && byteOffset === 0 && byteLength === buffer.byteLength) buffer.transfer(0);
}

/** The body, as long as it takes, but never silent for longer than `stallMs`. The time that the reader takes does not count. */
export async function* arriving(req: IncomingMessage, stallMs: number): AsyncGenerator<Buffer> {
  const stop = (): void => void req.destroy(new Error(`no byte came for ${stallMs} ms`));
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
