/** Joins chunks as they arrive. */
export interface ByteCollector {
  readonly size: number;
  add(chunk: Buffer): void;
  /** All bytes so far. */
  bytes(): Buffer;
}

const SMALLEST_CAPACITY = 4 * 1024;

/**
 * Copies chunks into one buffer that grows. An array of them would take a hundred times the size of a body whose chunks
 * have one byte.
 */
export function createByteCollector(): ByteCollector {
  let buffer: Buffer = Buffer.alloc(0);
  let size = 0;
  return {
    get size() {
      return size;
    },
    add(chunk) {
      if (size === 0) {
        // Most bodies are one chunk, which needs no copy.
        buffer = chunk;
      } else {
        if (size + chunk.length > buffer.length) {
          const grown = Buffer.allocUnsafeSlow(Math.max(SMALLEST_CAPACITY, 2 * size, size + chunk.length));
          buffer.copy(grown, 0, 0, size);
          buffer = grown;
        }
        chunk.copy(buffer, size);
      }
      size += chunk.length;
    },
    bytes: () => buffer.subarray(0, size),
  };
}
