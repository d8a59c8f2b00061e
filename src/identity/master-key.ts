import { randomBytes, randomUUID } from 'node:crypto';
import { link, mkdir, open, readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { seal, open as unseal } from '../base/secretbox.ts';
import { getSetting, putSettingIfAbsent } from '../store/settings.ts';
import type { Store } from '../store/store.ts';

const KEY_BYTES = 32;
/** The setting that contains its own key, sealed with the master key. Only the same master key can open it. */
const CHECK = 'master-key.check';

export interface MasterKeySource {
  /** The key file is in this directory, unless a key is configured. */
  readonly dataDir: string;
  readonly configured?: Uint8Array | undefined;
}

/**
 * Returns the key that encrypts secrets in the database: the configured one, or that of the key file, which the first
 * start creates. Throws when the secrets in the database are encrypted with another key.
 */
export async function openMasterKey(store: Store, { dataDir, configured }: MasterKeySource): Promise<Uint8Array> {
  const storedCheck = await getSetting(store.reader, CHECK);
  const existingKey = configured ?? (await readKeyFile(dataDir));
  if (existingKey === undefined && storedCheck !== undefined) throw wrongKey(dataDir);
  // The file is durable before anything is sealed with the key: without the key, all secrets are lost.
  const key = existingKey ?? (await createKeyFile(dataDir));
  const check = storedCheck ?? (await store.write((tx) => putSettingIfAbsent(tx, CHECK, seal(key, CHECK, CHECK))));
  if (!canOpen(key, check)) throw wrongKey(dataDir);
  return key;
}

const keyFileIn = (dataDir: string): string => join(dataDir, 'master.key');

const wrongKey = (dataDir: string): Error =>
  new Error(
    'the secrets in the database are encrypted with another master key: ' +
      `set WHARF_MASTER_KEY to that key, or put its file at ${keyFileIn(dataDir)}`,
  );

function canOpen(key: Uint8Array, check: string): boolean {
  try {
    return unseal(key, check, CHECK).toString() === CHECK;
  } catch {
    return false;
  }
}

async function readKeyFile(dataDir: string): Promise<Uint8Array | undefined> {
  let text: string;
  try {
    text = await readFile(keyFileIn(dataDir), 'utf8');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw new Error(`cannot read ${keyFileIn(dataDir)}: ${(error as Error).message}`);
  }
  const key = Buffer.from(text.trim(), 'base64');
  if (key.length !== KEY_BYTES) throw new Error(`${keyFileIn(dataDir)} is damaged: it must contain 32 bytes in base64`);
  return key;
}

async function createKeyFile(dataDir: string): Promise<Uint8Array> {
  await mkdir(dataDir, { recursive: true, mode: 0o700 });
  const temporary = `${keyFileIn(dataDir)}.${randomUUID()}`;
  await writeDurably(temporary, `${randomBytes(KEY_BYTES).toString('base64')}\n`);
  try {
    // Unlike a rename, a link does not replace the file of another server that starts at the same time.
    await link(temporary, keyFileIn(dataDir)).catch((error: NodeJS.ErrnoException) => {
      if (error.code !== 'EEXIST') throw error;
    });
  } finally {
    await rm(temporary);
  }
  await syncDirectory(dataDir);
  const key = await readKeyFile(dataDir);
  if (key === undefined) throw new Error(`${keyFileIn(dataDir)} was deleted while the server started`);
  return key;
}

async function writeDurably(path: string, text: string): Promise<void> {
  const file = await open(path, 'wx', 0o600);
  try {
    await file.writeFile(text);
    await file.sync();
  } finally {
    await file.close();
  }
}

/** The name of a new file is durable only after its directory is synced. */
async function syncDirectory(path: string): Promise<void> {
  const directory = await open(path, 'r');
  try {
    await directory.sync();
  } finally {
    await directory.close();
  }
}
