import type { FileHandle } from 'node:fs/promises';
import { metLater } from './defer-rejection.ts';
import { asBlobError, BlobError } from './errors.ts';

/** Larger ones are no faster, and two of them are in use per reader. */
const PIECE = 256 * 1024;

/**
 * Reads a piece while the sink still works on the one before. Two buffers take turns: fresh memory for each piece would
 * cost as much as filling it.
 */
export async function copyRange(
  file: FileHandle,
  start: number,
  length: number,
  sink: (piece: Uint8Array) => Promise<void>,
): Promise<void> {
  if (length === 0) return;
  const end = start + length;
  let resting: Buffer | undefined;
  let filling: Buffer | undefined;
  const read = (position: number): Promise<Uint8Array> => {
    [filling, resting] = [resting ?? Buffer.allocUnsafeSlow(Math.min(PIECE, length)), filling];
    return metLater(readPiece(file, filling.subarray(0, end - position), position));
  };

  let reading = read(start);
  let sinking = Promise.resolve();
  for (let position = start; position < end; ) {
    const piece = await reading;
    await sinking;
    position += piece.length;
    if (position < end) reading = read(position);
    sinking = metLater(sink(piece));
  }
  await sinking;
}

/** Fills the buffer, or less of it; a file that ends here, before its end, is an error. */
export async function readPiece(file: FileHandle, buffer: Buffer, position: number): Promise<Buffer> {
  try {
    const { bytesRead } = await file.read(buffer, 0, buffer.length, position);
    if (bytesRead > 0) return buffer.subarray(0, bytesRead);
  } catch (error) {
    throw asBlobError(error);
  }
  throw new BlobError({ reason: 'failed' }, new Error(`the file ended at byte ${position}`));
}
