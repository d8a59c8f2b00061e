import { UnreadableFile } from './unreadable-file.ts';

/** Takes a stream apart at will. Holds no more of it than is asked for, and the chunk it was cut from. */
export interface ByteReader {
  isAtEnd(): Promise<boolean>;
  take(length: number): Promise<Buffer>;
  skip(length: number): Promise<void>;
  close(): Promise<void>;
}

export function byteReader(stream: AsyncIterable<Uint8Array>): ByteReader {
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

  /** The next bytes: some, but at most so many. */
  async function next(most: number): Promise<Uint8Array> {
    if (await isAtEnd()) throw new UnreadableFile('is cut off: it ends in the middle of an entry');
    const part = current.subarray(0, most);
    current = current.subarray(part.length);
    return part;
  }

  return {
    isAtEnd,
    async take(length) {
      const parts: Uint8Array[] = [];
      for (let rest = length; rest > 0; ) {
        const part = await next(rest);
        parts.push(part);
        rest -= part.length;
      }
      return Buffer.concat(parts);
    },
    async skip(length) {
      for (let rest = length; rest > 0; ) rest -= (await next(rest)).length;
    },
    async close() {
      await chunks.return?.();
    },
  };
}
