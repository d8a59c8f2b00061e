import type { FileHandle } from 'node:fs/promises';
import { Readable } from 'node:stream';
import type { BlobReader, ByteRange } from './blobs.ts';
import { copyRange, readPiece } from './copy-range.ts';
import { BlobError } from './errors.ts';

/** A stream takes fresh memory for each chunk, so that fewer and larger ones are faster. */
const CHUNK = 1024 * 1024;

/** The file stays what it was when it was opened, and readable, even when its name is removed. */
export function createReader(file: FileHandle, size: number, range?: ByteRange): BlobReader {
  const { start, length } = range === undefined ? { start: 0, length: size } : within(size, range);
  return {
    size,
    length,
    copyTo: (sink) => copyRange(file, start, length, sink).finally(() => file.close()),
    stream: () => streamOf(file, start, start + length),
    close: () => file.close(),
  };
}

function within(size: number, { start, end }: ByteRange): { start: number; length: number } {
  const fits = Number.isSafeInteger(start) && start >= 0 && start < size && end >= start;
  if (!fits) throw new BlobError({ reason: 'range', size });
  return { start, length: Math.min(end + 1, size) - start };
}

/** Not `createReadStream`: a failure must come as one of ours. */
function streamOf(file: FileHandle, start: number, end: number): Readable {
  let position = start;
  return new Readable({
    highWaterMark: CHUNK,
    async read() {
      if (position === end) return void this.push(null);
      try {
        const piece = await readPiece(file, Buffer.allocUnsafeSlow(Math.min(CHUNK, end - position)), position);
        position += piece.length;
        this.push(piece);
      } catch (error) {
        this.destroy(error as Error);
      }
    },
    destroy(error, done) {
      file.close().then(() => done(error), done);
    },
  });
}
