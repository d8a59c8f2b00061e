import { type SealingKey, seal } from '../base/secretbox.ts';
import { getSetting, putSetting } from '../store/settings.ts';
import type { Store, Transaction } from '../store/store.ts';
import { CHECK, keyOf, type MasterKeySource, readKeys, wrongKey } from './master-key.ts';
import { newKey, replaceKeyFile, saveFormerKey } from './master-key-file.ts';
import { type Reseal, resealOne, SEALED_STATES, type SealedState, UPDATE_STATE } from './sealed-states.ts';
import { sealContext } from './tokens/rotate-and-revoke-keys.ts';

/** The result of a rotation. */
export interface MasterKeyRotation {
  /** The id of the master key that all secrets are sealed with now. */
  readonly keyId: string;
  /** How many secrets were sealed again. */
  readonly resealed: number;
  /** The files of former keys, which only older backups need. */
  readonly formerKeyFiles: readonly string[];
}

/**
 * Replaces the master key while servers run:
 *
 * 1. The new key is written to the key file, before the former one. With a configured key, all servers must have both.
 * 2. The setting CHECK makes the new key the current one. All servers seal with it from then on, and open with both.
 * 3. Everything that is sealed with the former key is sealed again, in batches.
 * 4. The former key is removed from the key file.
 *
 * After each step, every server that has the key file or both keys can open every secret. So it can be killed at any
 * time, and running it again completes the rotation. `onStep` is called after each step and each batch, for tests.
 */
export async function rotateMasterKey(
  store: Store,
  source: MasterKeySource,
  onStep: () => void = () => {},
): Promise<MasterKeyRotation> {
  if (source.configured && !source.configuredOld) {
    throw new Error(
      'the master key is configured: first restart all servers with the new key in WHARF_MASTER_KEY ' +
        'and the present one in WHARF_MASTER_KEY_OLD, then run this command with both',
    );
  }
  const { keys, target } = await store.write((tx) => makeCurrent(tx, source, onStep));
  onStep();
  let resealed = await store.write((tx) => resealSigningKeys(tx, keys, target));
  onStep();
  for (const place of SEALED_STATES) {
    for (let after: string | undefined = ''; after !== undefined; ) {
      const batch: Batch = await store.write((tx) => resealBatch(tx, place, after ?? '', keys, target));
      resealed += batch.resealed;
      after = batch.last;
      onStep();
    }
  }
  if (source.configured) return { keyId: target.id, resealed, formerKeyFiles: [] };
  const formerKeyFiles: string[] = [];
  for (const key of keys) if (key.id !== target.id) formerKeyFiles.push(await saveFormerKey(source.dataDir, key));
  await replaceKeyFile(source.dataDir, [target]);
  return { keyId: target.id, resealed, formerKeyFiles };
}

interface Keys {
  readonly keys: readonly SealingKey[];
  readonly target: SealingKey;
}

/**
 * Makes the new key the current one and returns it with all keys. Continues an interrupted rotation with its key. The
 * transaction may run again: then it finds the key that it has written to the file.
 */
async function makeCurrent(tx: Transaction, source: MasterKeySource, onStep: () => void): Promise<Keys> {
  // Lets one rotation run at a time.
  await putSetting(tx, 'master-key.rotation', '');
  const check = await getSetting(tx.forUpdate, CHECK);
  const existing = await readKeys(source);
  const current = check === undefined ? undefined : keyOf(existing, check);
  if (!current) throw wrongKey(source.dataDir);
  const isUnfinished = existing.length > 1;
  const keys = isUnfinished ? existing : [newKey(), ...existing];
  const target = keys[0] as SealingKey;
  if (!isUnfinished) {
    await replaceKeyFile(source.dataDir, keys);
    onStep();
  }
  if (target.id !== current.id) await putSetting(tx, CHECK, seal(target, CHECK, CHECK));
  return { keys, target };
}

const SIGNING_KEYS = 'SELECT kid, private_key FROM signing_key ORDER BY kid';
const UPDATE_SIGNING_KEY = 'UPDATE signing_key SET private_key = $2 WHERE kid = $1';

async function resealSigningKeys(tx: Transaction, keys: readonly SealingKey[], target: SealingKey): Promise<number> {
  let resealed = 0;
  for (const { kid, private_key } of await tx.forUpdate.all<{ kid: string; private_key: string }>(SIGNING_KEYS)) {
    const again = resealOne(keys, target, private_key, sealContext(kid));
    if (again === private_key) continue;
    await tx.run(UPDATE_SIGNING_KEY, kid, again);
    resealed++;
  }
  return resealed;
}

const BATCH_SIZE = 100;
const STATES = `SELECT uid, state FROM resource WHERE kind = $1 AND uid > $2 ORDER BY uid LIMIT ${BATCH_SIZE}`;

interface Batch {
  readonly resealed: number;
  /** The last uid of the batch; undefined when there are no more. */
  readonly last: string | undefined;
}

async function resealBatch(
  tx: Transaction,
  { resource: { kind }, change }: SealedState,
  after: string,
  keys: readonly SealingKey[],
  target: SealingKey,
): Promise<Batch> {
  const rows = await tx.forUpdate.all<{ uid: string; state: string | null }>(STATES, kind, after);
  let resealed = 0;
  const reseal: Reseal = (sealed, context) => {
    const again = resealOne(keys, target, sealed, context);
    if (again !== sealed) resealed++;
    return again;
  };
  for (const { uid, state } of rows) {
    if (state === null) continue;
    const before = resealed;
    const changed = change(uid, JSON.parse(state), reseal);
    if (resealed > before) await tx.run(UPDATE_STATE, kind, uid, JSON.stringify(changed));
  }
  return { resealed, last: rows.length === BATCH_SIZE ? rows.at(-1)?.uid : undefined };
}
