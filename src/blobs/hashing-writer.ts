import type { Hash } from 'node:crypto';
import type { FileHandle } from 'node:fs/promises';
import { metLater } from './defer-rejection.ts';

/** A batch is written when it has so many bytes, */
const BATCH_BYTES = 1024 * 1024;
/** or so many chunks: a tiny chunk can hold on to the 64 KiB that its socket read. */
const BATCH_CHUNKS = 64;
/** So much may be waiting for the disk. Else a 5 GB layer would wait in memory for one endless sync at the end. */
const SYNC_BYTES = 64 * 1024 * 1024;

export interface HashingWriter {
  /** Where the file ends, counting what is still on its way to it. */
  readonly end: number;
  write(chunk: Uint8Array): Promise<void>;
  /** Resolves when all that was handed over is in the file; call it last. */
  flush(): Promise<void>;
}

/**
 * Appends to a file and to its hash in one pass. This thread hashes one batch while another writes the batch before, and
 * a third brings older ones to the disk; `write` resolves late when the file or the disk falls behind.
 */
export function createHashingWriter(
  file: FileHandle,
  start: number,
  hash: Hash,
  done: (chunk: Uint8Array) => void = () => {},
): HashingWriter {
  let batch: Uint8Array[] = [];
  let received = start;
  let sent = start;
  let synced = start;
  let writing = Promise.resolve();
  let syncing = Promise.resolve();

  async function send(): Promise<void> {
    await writing;
    writing = metLater(writeAll(file, batch, sent, done));
    batch = [];
    sent = received;
    if (sent - synced < SYNC_BYTES) return;
    await syncing;
    syncing = metLater(file.datasync());
    synced = sent;
  }

  return {
    get end() {
      return received;
    },
    async write(chunk) {
      hash.update(chunk);
      batch.push(chunk);
      received += chunk.length;
      if (received - sent >= BATCH_BYTES || batch.length >= BATCH_CHUNKS) await send();
    },
    async flush() {
      if (received > sent) await send();
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
    // A disk that is nearly full takes a part; asked for the rest, it says why.
    const whole = Buffer.concat(batch);
    while (written < total)
      written += (await file.write(whole, written, total - written, position + written)).bytesWritten;
  }
  batch.forEach(done);
}
