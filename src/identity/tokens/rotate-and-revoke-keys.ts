import { generateKeyPair, randomUUID } from 'node:crypto';
import { promisify } from 'node:util';
import type { JWK } from 'jose';
import { calculateJwkThumbprint } from 'jose/jwk/thumbprint';
import { ACCESS_VERSION } from '../../resource/access-version.ts';
import { putSetting } from '../../store/settings.ts';
import type { Reader, Row, Store, Transaction } from '../../store/store.ts';
import type { MasterKeys } from '../master-key.ts';
import { ACCESS_TOKEN_LIFETIME_MS, KEY_OVERLAP_MS } from './lifetimes.ts';

export const ALGORITHM = 'RS256';

/**
 * - `next`: published, so that other servers fetch it before it is used.
 * - `current`: signs.
 * - `retired`: published until the last token that it signed has expired.
 */
export type KeyState = 'next' | 'current' | 'retired';

/** A signing key without its private key. Times are in milliseconds. */
export interface KeyInfo {
  readonly kid: string;
  readonly state: KeyState;
  readonly created: number;
  readonly activates: number;
  /** When its successor takes over. */
  readonly retires: number | undefined;
  /** When its publication ends. */
  readonly expires: number | undefined;
}

interface KeyRow extends Row {
  readonly kid: string;
  readonly created: number;
  readonly activates: number;
  readonly retires: number | null;
  readonly expires: number | null;
}

/**
 * Selects the key that signs at time $1. When the only key activates in the future, because the clock of the server
 * that added it is ahead, that key is selected.
 */
export const FROM_CURRENT_KEY = `FROM signing_key WHERE retires IS NULL OR retires > $1
  ORDER BY activates > $1, activates DESC LIMIT 1`;
const CURRENT = `SELECT kid ${FROM_CURRENT_KEY}`;
const LIST = `SELECT kid, created, activates, retires, expires FROM signing_key
  WHERE expires IS NULL OR expires > $1 ORDER BY activates DESC, kid`;
const NEWEST = 'SELECT activates, retires FROM signing_key WHERE retires IS NULL ORDER BY activates DESC LIMIT 1';
const INSERT = `INSERT INTO signing_key (kid, created, activates, private_key, public_jwk)
  VALUES ($1, $2, $3, $4, $5)`;
const RETIRE = 'UPDATE signing_key SET retires = $1, expires = $2 WHERE retires IS NULL OR retires > $3';
const DELETE = 'DELETE FROM signing_key WHERE kid = $1';
const DELETE_EXPIRED = 'DELETE FROM signing_key WHERE expires <= $1';

/** Serializes concurrent key changes, because all of them write this row. */
const lockKeys = (tx: Transaction, now: number) => putSetting(tx, 'signing-keys.changed', String(now));

/** Returns the id of the key that signs at this time. */
async function findCurrentKid(db: Reader, now: number): Promise<string | undefined> {
  return (await db.get<{ kid: string }>(CURRENT, now))?.kid;
}

/** Returns all published keys, the newest first. */
export async function listKeys(db: Reader, now: number): Promise<KeyInfo[]> {
  const current = await findCurrentKid(db, now);
  return (await db.all<KeyRow>(LIST, now)).map(({ kid, created, activates, retires, expires }) => ({
    kid,
    state: kid === current ? 'current' : activates > now && (retires ?? Infinity) > now ? 'next' : 'retired',
    created,
    activates,
    retires: retires ?? undefined,
    expires: expires ?? undefined,
  }));
}

/** Creates the first key of a database, unless one exists. */
export async function ensureKey(store: Store, masterKeys: MasterKeys, now: number): Promise<void> {
  if ((await findCurrentKid(store.reader, now)) !== undefined) return;
  const key = await newKey();
  await store.write(async (tx) => {
    await lockKeys(tx, now);
    if ((await findCurrentKid(tx, now)) === undefined) await addKey(tx, masterKeys, key, now, now);
  });
}

/** Whether the current key must be replaced: it has signed for `maxAgeMs`, and has no successor yet. */
export const isRotationDue = (
  { activates, retires }: Pick<KeyRow, 'activates' | 'retires'>,
  maxAgeMs: number,
  now: number,
): boolean => retires === null && activates + maxAgeMs <= now;

/** Adds a key as `rotateKeys` does if it is due. Of several servers, one does. */
export async function rotateDueKey(store: Store, masterKeys: MasterKeys, maxAgeMs: number, now: number): Promise<void> {
  const key = await newKey();
  await store.write(async (tx) => {
    await lockKeys(tx, now);
    const newest = await tx.get<Row & Pick<KeyRow, 'activates' | 'retires'>>(NEWEST);
    if (!newest || !isRotationDue(newest, maxAgeMs, now)) return;
    await addKey(tx, masterKeys, key, now, now + KEY_OVERLAP_MS);
  });
}

/** Adds a key that is published at once and signs from `activates` on. Returns its id. */
export async function rotateKeys(
  store: Store,
  masterKeys: MasterKeys,
  now: number,
  activates = now + KEY_OVERLAP_MS,
): Promise<string> {
  const key = await newKey();
  await store.write(async (tx) => {
    await lockKeys(tx, now);
    await addKey(tx, masterKeys, key, now, activates);
  });
  return key.kid;
}

/**
 * Deletes a key. From now on no server accepts a token that it signed. A new key replaces the `current` key at once,
 * and a `next` key after the overlap. Returns whether the key existed.
 */
export async function revokeKey(store: Store, masterKeys: MasterKeys, kid: string, now: number): Promise<boolean> {
  const replacement = await newKey();
  return store.write(async (tx) => {
    await lockKeys(tx, now);
    const revoked = (await listKeys(tx, now)).find((listed) => listed.kid === kid);
    if (revoked === undefined) return false;
    await tx.run(DELETE, kid);
    // Invalidates the caches of authenticated tokens, such as that of the registry.
    await putSetting(tx, ACCESS_VERSION, randomUUID());
    if (revoked.state === 'current') await addKey(tx, masterKeys, replacement, now, now);
    if (revoked.state === 'next') await addKey(tx, masterKeys, replacement, now, now + KEY_OVERLAP_MS);
    return true;
  });
}

interface NewSigningKey {
  readonly kid: string;
  /** PKCS #8 in PEM. */
  readonly privateKey: string;
  readonly publicJwk: JWK;
}

async function addKey(
  tx: Transaction,
  masterKeys: MasterKeys,
  key: NewSigningKey,
  now: number,
  activates: number,
): Promise<void> {
  const sealed = await masterKeys.seal(tx, key.privateKey, sealContext(key.kid));
  // The overlap is added because the clocks of the servers may differ.
  await tx.run(RETIRE, activates, activates + ACCESS_TOKEN_LIFETIME_MS + KEY_OVERLAP_MS, now);
  await tx.run(INSERT, key.kid, now, activates, sealed, JSON.stringify(key.publicJwk));
  await tx.run(DELETE_EXPIRED, now);
}

/** The context that a private key is sealed with. A secret that is sealed with another context cannot replace it. */
export const sealContext = (kid: string): string => `signing-key ${kid}`;

async function newKey(): Promise<NewSigningKey> {
  const { privateKey, publicKey } = await promisify(generateKeyPair)('rsa', { modulusLength: 2048 });
  const jwk = publicKey.export({ format: 'jwk' }) as JWK;
  // The thumbprint of RFC 7638. In hex, because base64url may begin with a dash and look like a command-line option.
  const kid = Buffer.from(await calculateJwkThumbprint(jwk), 'base64url')
    .toString('hex')
    .slice(0, 32);
  return {
    kid,
    privateKey: privateKey.export({ format: 'pem', type: 'pkcs8' }).toString(),
    publicJwk: { ...jwk, kid, use: 'sig', alg: ALGORITHM },
  };
}
