import { randomBytes, randomUUID } from 'node:crypto';
import { link, mkdir, open, readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { seal, open as unseal } from '../base/secretbox.ts';
import { getSetting, putSettingIfAbsent } from '../store/settings.ts';
import type { Store } from '../store/store.ts';

const KEY_BYTES = 32;
/** A known text sealed with the master key: whoever opens it has the right one. */
const CHECK = 'master-key.check';

export interface MasterKeySource {
  /** Holds the key file, unless a key is configured. */
  readonly dataDir: string;
  readonly configured?: Uint8Array | undefined;
}

/**
 * The key that encrypts secrets in the database: the configured one, or that of a file which the first start makes.
 * Refuses one that does not open what is there, before anything is sealed with it.
 */
export async function openMasterKey(store: Store, { dataDir, configured }: MasterKeySource): Promise<Uint8Array> {
  const known = await getSetting(store.reader, CHECK);
  const held = configured ?? (await readKeyFile(dataDir));
  if (held === undefined && known !== undefined) throw wrongKey(dataDir);
  // Durable before anything is sealed with it: a lost key loses every secret.
  const key = held ?? (await createKeyFile(dataDir));
  const check = known ?? (await store.write((tx) => putSettingIfAbsent(tx, CHECK, seal(key, CHECK, CHECK))));
  if (!opens(key, check)) throw wrongKey(dataDir);
  return key;
}

const fileIn = (dataDir: string): string => join(dataDir, 'master.key');

const wrongKey = (dataDir: string): Error =>
  new Error(
    `the secrets in the database are encrypted with another master key: set WHARF_MASTER_KEY to that key, or put its file at ${fileIn(dataDir)}`,
  );

function opens(key: Uint8Array, check: string): boolean {
  try {
    return unseal(key, check, CHECK).toString() === CHECK;
  } catch {
    return false;
  }
}

async function readKeyFile(dataDir: string): Promise<Uint8Array | undefined> {
  let text: string;
  try {
    text = await readFile(fileIn(dataDir), 'utf8');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw new Error(`cannot read ${fileIn(dataDir)}: ${(error as Error).message}`);
  }
  const key = Buffer.from(text.trim(), 'base64');
  if (key.length !== KEY_BYTES) throw new Error(`${fileIn(dataDir)} is damaged: it must hold 32 bytes in base64`);
  return key;
}

async function createKeyFile(dataDir: string): Promise<Uint8Array> {
  await mkdir(dataDir, { recursive: true, mode: 0o700 });
  const temporary = `${fileIn(dataDir)}.${randomUUID()}`;
  await writeDurably(temporary, `${randomBytes(KEY_BYTES).toString('base64')}\n`);
  try {
    // Unlike a rename, a link never replaces the file of a server that was faster.
    await link(temporary, fileIn(dataDir)).catch((error: NodeJS.ErrnoException) => {
      if (error.code !== 'EEXIST') throw error;
    });
  } finally {
    await rm(temporary);
  }
  await syncDirectory(dataDir);
  const key = await readKeyFile(dataDir);
  if (key === undefined) throw new Error(`${fileIn(dataDir)} disappeared`);
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

/** The name of a new file is safe only once its directory is. */
async function syncDirectory(path: string): Promise<void> {
  const directory = await open(path, 'r');
  try {
    await directory.sync();
  } finally {
    await directory.close();
  }
}
