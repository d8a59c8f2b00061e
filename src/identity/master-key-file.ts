import { randomBytes, randomUUID } from 'node:crypto';
import { link, mkdir, open, readFile, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { type SealingKey, sealingKey } from '../base/secretbox.ts';
import { syncDirectory } from '../base/sync-directory.ts';

// The key file has one key per line. The first is the newest. There are others only while the master key is rotated.

const KEY_BYTES = 32;

export const keyFileIn = (dataDir: string): string => join(dataDir, 'master.key');

/** What to do about a master key that cannot be restored. */
export const ifLost =
  "If it is lost, 'wharf keys reset-master' lists the secrets that are lost with it, and replaces it with --yes";

/** A new random key. */
export const newKey = (): SealingKey => sealingKey(randomBytes(KEY_BYTES));

/** The keys in the file, the newest first. Empty when there is no file. */
export async function readKeyFile(dataDir: string): Promise<SealingKey[]> {
  let text: string;
  try {
    text = await readFile(keyFileIn(dataDir), 'utf8');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return [];
    throw new Error(`cannot read ${keyFileIn(dataDir)}: ${(error as Error).message}`);
  }
  const keys = text
    .trim()
    .split('\n')
    .map((line) => Buffer.from(line.trim(), 'base64'));
  if (keys.some(({ length }) => length !== KEY_BYTES)) {
    throw new Error(
      `${keyFileIn(dataDir)} is damaged: each line must contain 32 bytes in base64; restore it from a backup. ${ifLost}`,
    );
  }
  return keys.map(sealingKey);
}

/** Creates the file with a new key, unless another server creates it at the same time. Returns the keys in the file. */
export async function createKeyFile(dataDir: string): Promise<SealingKey[]> {
  await mkdir(dataDir, { recursive: true, mode: 0o700 });
  const temporary = await writeTemporary(keyFileIn(dataDir), [newKey()]);
  try {
    // Unlike a rename, a link does not replace the file of another server that starts at the same time.
    await link(temporary, keyFileIn(dataDir)).catch((error: NodeJS.ErrnoException) => {
      if (error.code !== 'EEXIST') throw error;
    });
  } finally {
    await rm(temporary);
  }
  await syncDirectory(dataDir);
  const keys = await readKeyFile(dataDir);
  if (keys.length === 0) throw new Error(`${keyFileIn(dataDir)} was deleted while the server started`);
  return keys;
}

/** Replaces the keys in the file, atomically and durably. */
export const replaceKeyFile = (dataDir: string, keys: readonly SealingKey[]): Promise<void> =>
  replaceFile(dataDir, keyFileIn(dataDir), keys);

/** Writes a key that is not used any more to a file of its own, because older backups need it. Returns its path. */
export async function saveFormerKey(dataDir: string, key: SealingKey): Promise<string> {
  const path = `${keyFileIn(dataDir)}.former-${key.id}`;
  await replaceFile(dataDir, path, [key]);
  return path;
}

/** Moves a key file that does not fit the database aside, and returns its new path. Undefined if there is none. */
export async function setKeyFileAside(dataDir: string, now: number): Promise<string | undefined> {
  const path = `${keyFileIn(dataDir)}.unused-${new Date(now).toISOString().replaceAll(':', '')}`;
  try {
    await rename(keyFileIn(dataDir), path);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw error;
  }
  await syncDirectory(dataDir);
  return path;
}

async function replaceFile(dataDir: string, path: string, keys: readonly SealingKey[]): Promise<void> {
  await rename(await writeTemporary(path, keys), path);
  await syncDirectory(dataDir);
}

async function writeTemporary(path: string, keys: readonly SealingKey[]): Promise<string> {
  const temporary = `${path}.${randomUUID()}`;
  const file = await open(temporary, 'wx', 0o600);
  try {
    await file.writeFile(keys.map(({ bytes }) => `${Buffer.from(bytes).toString('base64')}\n`).join(''));
    await file.sync();
  } finally {
    await file.close();
  }
  return temporary;
}
