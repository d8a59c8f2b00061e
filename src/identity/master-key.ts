import { keyIdOf, type SealingKey, seal, sealingKey, UnsealError, open as unseal } from '../base/secretbox.ts';
import { getSetting, putSettingIfAbsent } from '../store/settings.ts';
import type { Store, Transaction } from '../store/store.ts';
import { createKeyFile, ifLost, keyFileIn, readKeyFile } from './master-key-file.ts';

/**
 * The setting that contains its own key, sealed with the current master key. It shows whether a server has the right
 * key, and tells all servers which key to seal with.
 */
export const CHECK = 'master-key.check';

export interface MasterKeySource {
  /** The key file is in this directory, unless a key is configured. */
  readonly dataDir: string;
  readonly configured?: Uint8Array | undefined;
  /** The key before a rotation. */
  readonly configuredOld?: Uint8Array | undefined;
}

/** The keys that encrypt secrets in the database: the current one and, during a rotation, the one before or after it. */
export interface MasterKeys {
  /**
   * Encrypts a secret with the current key, for a row that `tx` writes. A rotation cannot change the current key before
   * `tx` commits, so it finds every secret that is sealed with the former key.
   */
  seal(tx: Transaction, secret: string | Uint8Array, context: string): Promise<string>;
  /** Decrypts a secret. Throws an UnsealError when this server does not have its key. */
  open(sealed: string, context: string): Promise<Buffer>;
}

/**
 * Returns the configured keys, or those of the key file, which the first start creates. Throws when the secrets in the
 * database are encrypted with another key.
 */
export async function openMasterKeys(store: Store, source: MasterKeySource): Promise<MasterKeys> {
  const { dataDir } = source;
  const storedCheck = await getSetting(store.reader, CHECK);
  const existing = await readKeys(source);
  if (existing.length === 0 && storedCheck !== undefined) throw missingKey(dataDir, storedCheck);
  // The file is durable before anything is sealed with the key: without the key, all secrets are lost.
  const keys = existing.length > 0 ? existing : await createKeyFile(dataDir);
  const first = keys[0] as SealingKey;
  const check = storedCheck ?? (await store.write((tx) => putSettingIfAbsent(tx, CHECK, seal(first, CHECK, CHECK))));
  if (!keyOf(keys, check)) throw wrongKey(dataDir, check);
  return createMasterKeys(keys, source);
}

/** The keys that are configured or in the key file, the newest first. */
export async function readKeys({ dataDir, configured, configuredOld }: MasterKeySource): Promise<SealingKey[]> {
  if (!configured) return readKeyFile(dataDir);
  return [configured, ...(configuredOld ? [configuredOld] : [])].map(sealingKey);
}

/** The key that the value of the setting CHECK is sealed with. */
export const keyOf = (keys: readonly SealingKey[], check: string): SealingKey | undefined =>
  keys.find((key) => canOpen(key, check));

const missingKey = (dataDir: string, check: string): Error =>
  new Error(
    `the master key is missing: there is no ${keyFileIn(dataDir)} and WHARF_MASTER_KEY is not set, but the database ` +
      `has secrets that are encrypted with it${idIn(check)}. Restore it from a backup. ${ifLost}`,
  );

export const wrongKey = (dataDir: string, check = ''): Error =>
  new Error(
    `the secrets in the database are encrypted with another master key${idIn(check)}: ` +
      `set WHARF_MASTER_KEY to that key, or put its file at ${keyFileIn(dataDir)}. ${ifLost}`,
  );

/** The id of the key that a value is sealed with, by which its file can be found: `master.key.former-<id>`. */
function idIn(sealed: string): string {
  const id = sealed === '' ? undefined : keyIdOf(sealed);
  return id === undefined ? '' : ` (key id ${id})`;
}

function createMasterKeys(initialKeys: readonly SealingKey[], source: MasterKeySource): MasterKeys {
  let keys = initialKeys;
  let current: { readonly check: string; readonly key: SealingKey } | undefined;

  /** Reads the key file again, after a rotation by another process. Keys that are not in the file any more are kept. */
  async function reload(): Promise<void> {
    const read = await readKeys(source);
    keys = [...read, ...keys.filter(({ id }) => read.every((key) => key.id !== id))];
  }

  async function currentKey(tx: Transaction): Promise<SealingKey> {
    const check = (await getSetting(tx.forShare, CHECK)) ?? '';
    if (current?.check === check) return current.key;
    if (!keyOf(keys, check)) await reload();
    const key = keyOf(keys, check);
    if (!key) throw wrongKey(source.dataDir, check);
    current = { check, key };
    return key;
  }

  function tryOpen(sealed: string, context: string): Buffer | undefined {
    for (const key of keys) {
      try {
        return unseal(key, sealed, context);
      } catch (error) {
        if (!(error instanceof UnsealError)) throw error;
      }
    }
    return undefined;
  }

  return {
    seal: async (tx, secret, context) => seal(await currentKey(tx), secret, context),

    async open(sealed, context) {
      const id = keyIdOf(sealed);
      const opened = tryOpen(sealed, context);
      if (opened) return opened;
      await reload();
      const openedLater = tryOpen(sealed, context);
      if (openedLater) return openedLater;
      const hasKey = id === undefined || keys.some((key) => key.id === id);
      throw new UnsealError(
        hasKey
          ? 'the secret was sealed with another key or context, or it was altered'
          : `the secret was sealed with the master key ${id}, which this server does not have: ${wrongKey(source.dataDir).message}`,
      );
    },
  };
}

function canOpen(key: SealingKey, check: string): boolean {
  try {
    return unseal(key, check, CHECK).toString() === CHECK;
  } catch {
    return false;
  }
}
