import { UnreadableFileError } from './unreadable-file-error.ts';

/** Reads a stream in pieces of any length. Buffers only the requested bytes and the current chunk. */
export interface ByteReader {
  isAtEnd(): Promise<boolean>;
  read(length: number): Promise<Buffer>;
  skip(length: number): Promise<void>;
  close(): Promise<void>;
}

export function createByteReader(stream: AsyncIterable<Uint8Array>): ByteReader {
  const chunks = stream[Symbol.asyncIterator]();
  let current: Uint8Array = new Uint8Array();

  async function isAtEnd(): Promise<boolean> {
    while (current.length === 0) {
      const { value, done } = await chunks.next();
      if (done) return true;
      current = value;
    }
    return false;
  }

  /** Returns at least one and at most `maxLength` bytes. */
  async function next(maxLength: number): Promise<Uint8Array> {
    if (await isAtEnd()) throw new UnreadableFileError('is truncated: it ends in the middle of an entry');
    const part = current.subarray(0, maxLength);
    current = current.subarray(part.length);
    return part;
  }

  return {
    isAtEnd,
    async read(length) {
      const parts: Uint8Array[] = [];
      for (let remaining = length; remaining > 0; ) {
        const part = await next(remaining);
        parts.push(part);
        remaining -= part.length;
      }
      return Buffer.concat(parts);
    },
    async skip(length) {
      for (let remaining = length; remaining > 0; ) remaining -= (await next(remaining)).length;
    },
    async close() {
      await chunks.return?.();
    },
  };
}
