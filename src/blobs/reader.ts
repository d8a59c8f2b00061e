import type { FileHandle } from 'node:fs/promises';
import { Readable } from 'node:stream';
import type { BlobReader, ByteRange } from './blobs.ts';
import { copyRange, readChunk } from './copy-range.ts';
import { BlobError } from './errors.ts';

/** A stream allocates memory for each chunk, so that fewer and larger ones are faster. */
const STREAM_CHUNK = 1024 * 1024;

/** Reads from an open file, which stays readable and unchanged even if it is deleted or replaced. */
export function createReader(file: FileHandle, size: number, range?: ByteRange): BlobReader {
  const { start, length } = range === undefined ? { start: 0, length: size } : resolveRange(size, range);
  return {
    size,
    length,
    copyTo: (sink) => copyRange(file, start, length, sink).finally(() => file.close()),
    stream: () => streamOf(file, start, start + length),
    close: () => file.close(),
  };
}

function resolveRange(size: number, { start, end }: ByteRange): { start: number; length: number } {
  const isValid = Number.isSafeInteger(start) && start >= 0 && start < size && end >= start;
  if (!isValid) throw new BlobError({ reason: 'range', size });
  return { start, length: Math.min(end + 1, size) - start };
}

/** Not `createReadStream`, because an error must be a BlobError. */
function streamOf(file: FileHandle, start: number, end: number): Readable {
  let position = start;
  return new Readable({
    highWaterMark: STREAM_CHUNK,
    async read() {
      if (position === end) return void this.push(null);
      try {
        const chunk = await readChunk(file, Buffer.allocUnsafeSlow(Math.min(STREAM_CHUNK, end - position)), position);
        position += chunk.length;
        this.push(chunk);
      } catch (error) {
        this.destroy(error as Error);
      }
    },
    destroy(error, done) {
      file.close().then(() => done(error), done);
    },
  });
}
