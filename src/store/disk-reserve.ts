import { randomBytes } from 'node:crypto';
import { open, rename, rm, stat, statfs } from 'node:fs/promises';
import { join } from 'node:path';

// SQLite needs space for every write, also to record what garbage collection has deleted. A file in the data directory
// keeps that space free: garbage collection deletes the file when the disk is full.

/** More than the write-ahead log grows before SQLite reuses it (`wal_autocheckpoint` in sqlite.ts). */
const RESERVE_BYTES = 20 * 1024 * 1024;
/** With less free space than this, no reserve is made. */
const MIN_FREE_BYTES = 5 * RESERVE_BYTES;
const CHUNK_BYTES = 1024 * 1024;

export const reserveIn = (dataDir: string): string => join(dataDir, 'disk-reserve');

/** Creates the file unless it exists or space is short. Returns whether it exists. */
export async function createDiskReserve(dataDir: string): Promise<boolean> {
  const path = reserveIn(dataDir);
  if ((await stat(path).catch(() => undefined)) !== undefined) return true;
  const { bavail, bsize } = await statfs(dataDir);
  if (bavail * bsize < MIN_FREE_BYTES) return false;
  const temporary = `${path}.new`;
  const file = await open(temporary, 'w', 0o600);
  try {
    // Random, because some file systems store zeros without using space.
    const chunk = randomBytes(CHUNK_BYTES);
    for (let written = 0; written < RESERVE_BYTES; written += CHUNK_BYTES) await file.write(chunk);
    await file.sync();
  } finally {
    await file.close();
  }
  await rename(temporary, path);
  return true;
}

/** With less free space than this, SQLite may be unable to open a database. */
const FULL_BYTES = 1024 * 1024;

/** Whether the disk of a data directory has next to no space. */
export async function isDiskFull(dataDir: string): Promise<boolean> {
  const { bavail, bsize } = await statfs(dataDir);
  return bavail * bsize < FULL_BYTES;
}

/** Frees the space. Returns whether there was any. */
export async function freeDiskReserve(dataDir: string): Promise<boolean> {
  try {
    await rm(reserveIn(dataDir));
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return false;
    throw error;
  }
}
