import type { SealingKey } from '../base/secretbox.ts';
import { seal } from '../base/secretbox.ts';
import { disableSinkWithoutSecret } from '../domains/events/sink-rows.ts';
import { subscriptions } from '../domains/events/subscriptions.ts';
import { bumpAccessVersion } from '../resource/access-version.ts';
import { find } from '../resource/read.ts';
import { getSetting, putSetting } from '../store/settings.ts';
import type { Reader, Store, Transaction } from '../store/store.ts';
import { CHECK, keyOf, type MasterKeySource, readKeys } from './master-key.ts';
import { newKey, replaceKeyFile, setKeyFileAside } from './master-key-file.ts';
import { resealOne, SEALED_STATES, type SealedState, UPDATE_STATE } from './sealed-states.ts';
import { sealContext } from './tokens/rotate-and-revoke-keys.ts';

/** A secret that cannot be decrypted without the lost master key. */
export interface LostSecret {
  /** The kind of the resource that it belongs to, such as `subscription`. */
  readonly kind: string;
  readonly uid: string;
  /** By what people know the resource: its name, or the URL of a sink. */
  readonly name: string;
  /** What the secret is, such as `client secret`. */
  readonly secret: string;
  /** The command that sets it again. */
  readonly repair: string;
}

/** What is lost with the master key. */
export interface MasterKeyLoss {
  readonly secrets: readonly LostSecret[];
  /** How many signing keys are lost. Access tokens that they signed become invalid. */
  readonly signingKeys: number;
}

export interface MasterKeyReset extends MasterKeyLoss {
  /** The id of the new master key. */
  readonly keyId: string;
  /** Where the file with the key that did not fit was moved to. */
  readonly formerKeyFile: string | undefined;
}

/** Finds out what is lost. Throws if the master key is not. */
export async function findMasterKeyLoss(store: Store, source: MasterKeySource): Promise<MasterKeyLoss> {
  const keys = await requireLostKey(store.reader, source);
  return loseSecrets(store.reader, keys, undefined);
}

/**
 * Gives up the secrets that no given key opens, and replaces the master key: by a new one in the key file, or by the
 * configured one. The key is on disk before the transaction. If the command is killed in between, it can be repeated.
 */
export async function resetMasterKey(store: Store, source: MasterKeySource, now: number): Promise<MasterKeyReset> {
  const keys = await requireLostKey(store.reader, source);
  const isConfigured = source.configured !== undefined;
  const target = isConfigured ? (keys[0] as SealingKey) : newKey();
  const formerKeyFile = isConfigured ? undefined : await setKeyFileAside(source.dataDir, now);
  if (!isConfigured) await replaceKeyFile(source.dataDir, [target]);
  const loss = await store.write(async (tx) => {
    await putSetting(tx, CHECK, seal(target, CHECK, CHECK));
    const lost = await loseSecrets(tx.forUpdate, keys, { tx, target, now });
    bumpAccessVersion(tx);
    return lost;
  });
  return { ...loss, keyId: target.id, formerKeyFile };
}

/** Returns the keys that are there, none of which is the current one. */
async function requireLostKey(db: Reader, source: MasterKeySource): Promise<SealingKey[]> {
  const check = await getSetting(db, CHECK);
  // A damaged key file is as good as none.
  const keys = await readKeys(source).catch(() => []);
  if (check !== undefined && !keyOf(keys, check)) return keys;
  throw new Error(
    check === undefined
      ? 'the database has no secrets yet: start the server, which creates the master key'
      : "the master key fits the database, so no secret is lost: to replace it, run 'wharf keys rotate-master'",
  );
}

/** The transaction in which secrets are given up. */
interface Change {
  readonly tx: Transaction;
  readonly target: SealingKey;
  readonly now: number;
}

/** Finds all lost secrets. With `change`, removes them and seals the others again. */
async function loseSecrets(
  db: Reader,
  keys: readonly SealingKey[],
  change: Change | undefined,
): Promise<MasterKeyLoss> {
  // Only tells whether a key opens a secret.
  const target = change?.target ?? newKey();
  const signingKeys = await loseSigningKeys(db, keys, target, change);
  const secrets: LostSecret[] = [];
  for (const sealed of SEALED_STATES) {
    const { kind } = sealed.resource;
    for (const { uid, state } of await db.all<{ uid: string; state: string | null }>(STATES, kind)) {
      if (state === null) continue;
      const resealed = tryChange(sealed, uid, JSON.parse(state), keys, target);
      if (!resealed) secrets.push(await describe(db, sealed, uid));
      const changed = resealed ?? sealed.withoutSecrets(JSON.parse(state));
      if (!change) continue;
      await change.tx.run(UPDATE_STATE, kind, uid, JSON.stringify(changed));
      if (!resealed && kind === subscriptions.kind) await disableSinkWithoutSecret(change.tx, uid, change.now);
    }
  }
  return { secrets, signingKeys };
}

const STATES = 'SELECT uid, state FROM resource WHERE kind = $1 ORDER BY uid';
const SIGNING_KEYS = 'SELECT kid, private_key FROM signing_key ORDER BY kid';
const UPDATE_SIGNING_KEY = 'UPDATE signing_key SET private_key = $2 WHERE kid = $1';
const DELETE_SIGNING_KEY = 'DELETE FROM signing_key WHERE kid = $1';

/** The next start creates a signing key if none is left. */
async function loseSigningKeys(
  db: Reader,
  keys: readonly SealingKey[],
  target: SealingKey,
  change: Change | undefined,
): Promise<number> {
  let lost = 0;
  for (const { kid, private_key } of await db.all<{ kid: string; private_key: string }>(SIGNING_KEYS)) {
    const resealed = attempt(() => resealOne(keys, target, private_key, sealContext(kid)));
    if (resealed === undefined) lost++;
    if (resealed === undefined) await change?.tx.run(DELETE_SIGNING_KEY, kid);
    else await change?.tx.run(UPDATE_SIGNING_KEY, kid, resealed);
  }
  return lost;
}

const tryChange = (
  { change }: SealedState,
  uid: string,
  state: Readonly<Record<string, unknown>>,
  keys: readonly SealingKey[],
  target: SealingKey,
): Readonly<Record<string, unknown>> | undefined =>
  attempt(() => change(uid, state, (sealed, context) => resealOne(keys, target, sealed, context)));

function attempt<T>(work: () => T): T | undefined {
  try {
    return work();
  } catch {
    return undefined;
  }
}

async function describe(db: Reader, { resource, secret, repair }: SealedState, uid: string): Promise<LostSecret> {
  const message = (await find(db, resource, uid))?.message as { name?: string; sink?: string } | undefined;
  return { kind: resource.kind, uid, name: message?.name ?? message?.sink ?? '', secret, repair: repair(uid) };
}
