import type { FileHandle } from 'node:fs/promises';
import { deferRejection } from './defer-rejection.ts';
import { asBlobError, BlobError } from './errors.ts';

/** Larger chunks are not faster, and each reader uses two buffers of this size. */
const CHUNK = 256 * 1024;

/**
 * Reads a chunk while the sink still processes the one before. It alternates between two buffers: to allocate memory
 * for each chunk would cost as much as to fill it.
 */
export async function copyRange(
  file: FileHandle,
  start: number,
  length: number,
  sink: (chunk: Uint8Array) => Promise<void>,
): Promise<void> {
  if (length === 0) return;
  const end = start + length;
  let sinkBuffer: Buffer | undefined;
  let readBuffer: Buffer | undefined;
  const read = (position: number): Promise<Uint8Array> => {
    [readBuffer, sinkBuffer] = [sinkBuffer ?? Buffer.allocUnsafeSlow(Math.min(CHUNK, length)), readBuffer];
    return deferRejection(readChunk(file, readBuffer.subarray(0, end - position), position));
  };

  let reading = read(start);
  let sinking = Promise.resolve();
  for (let position = start; position < end; ) {
    const chunk = await reading;
    await sinking;
    position += chunk.length;
    if (position < end) reading = read(position);
    sinking = deferRejection(sink(chunk));
  }
  await sinking;
}

/** Reads at most as many bytes as the buffer has, and at least one. Fails at the end of the file. */
export async function readChunk(file: FileHandle, buffer: Buffer, position: number): Promise<Buffer> {
  try {
    const { bytesRead } = await file.read(buffer, 0, buffer.length, position);
    if (bytesRead > 0) return buffer.subarray(0, bytesRead);
  } catch (error) {
    throw asBlobError(error);
  }
  throw new BlobError({ reason: 'failed' }, new Error(`the file ended at byte ${position}`));
}
