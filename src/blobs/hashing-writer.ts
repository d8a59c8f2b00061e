import type { Hash } from 'node:crypto';
import type { FileHandle } from 'node:fs/promises';
import { deferRejection } from './defer-rejection.ts';

/** A batch is written when it has this many bytes or BATCH_CHUNKS. */
const BATCH_BYTES = 1024 * 1024;
/** A small chunk can keep the 64 KiB in memory that its socket read. */
const BATCH_CHUNKS = 64;
/** The file is synced after this many bytes. Otherwise a layer of 5 GB would be synced at the end, in one long sync. */
const SYNC_BYTES = 64 * 1024 * 1024;

export interface HashingWriter {
  /** The size of the file, including bytes that are not written yet. */
  readonly end: number;
  write(chunk: Uint8Array): Promise<void>;
  /** Resolves when all bytes are written. Must be called last. */
  flush(): Promise<void>;
}

/**
 * Appends to a file and updates its hash. While this thread hashes a batch, one thread writes the batch before, and
 * another one syncs older ones. `write` waits when writing or syncing is slower than the source.
 */
export function createHashingWriter(
  file: FileHandle,
  start: number,
  hash: Hash,
  done: (chunk: Uint8Array) => void = () => {},
): HashingWriter {
  let batch: Uint8Array[] = [];
  let end = start;
  let writeEnd = start;
  let syncEnd = start;
  let writing = Promise.resolve();
  let syncing = Promise.resolve();

  async function writeBatch(): Promise<void> {
    await writing;
    writing = deferRejection(writeAll(file, batch, writeEnd, done));
    batch = [];
    writeEnd = end;
    if (writeEnd - syncEnd < SYNC_BYTES) return;
    await syncing;
    syncing = deferRejection(file.datasync());
    syncEnd = writeEnd;
  }

  return {
    get end() {
      return end;
    },
    async write(chunk) {
      hash.update(chunk);
      batch.push(chunk);
      end += chunk.length;
      if (end - writeEnd >= BATCH_BYTES || batch.length >= BATCH_CHUNKS) await writeBatch();
    },
    async flush() {
      if (end > writeEnd) await writeBatch();
      await writing;
      await syncing;
    },
  };
}

async function writeAll(
  file: FileHandle,
  batch: readonly Uint8Array[],
  position: number,
  done: (chunk: Uint8Array) => void,
): Promise<void> {
  let { bytesWritten: written } = await file.writev(batch, position);
  const total = batch.reduce((sum, chunk) => sum + chunk.length, 0);
  if (written < total) {
    // A disk that is nearly full may accept only a part. Writing the rest then fails with the reason.
    const whole = Buffer.concat(batch);
    while (written < total)
      written += (await file.write(whole, written, total - written, position + written)).bytesWritten;
  }
  batch.forEach(done);
}
