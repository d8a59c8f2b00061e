import { generateKeyPair, randomUUID } from 'node:crypto';
import { promisify } from 'node:util';
import type { JWK } from 'jose';
import { calculateJwkThumbprint } from 'jose/jwk/thumbprint';
import { seal } from '../../base/secretbox.ts';
import { ACCESS_VERSION } from '../../resource/access-version.ts';
import { putSetting } from '../../store/settings.ts';
import type { Reader, Row, Store, Transaction } from '../../store/store.ts';
import { KEY_OVERLAP_MS, TOKEN_LIFETIME_MS } from './lifetimes.ts';

export const ALGORITHM = 'RS256';

/** `next` is published so that others learn it, `current` signs, `retired` is published until its last token has ended. */
export type KeyState = 'next' | 'current' | 'retired';

/** A signing key without its secret. Times are in milliseconds. */
export interface KeyInfo {
  readonly kid: string;
  readonly state: KeyState;
  readonly created: number;
  readonly activates: number;
  /** When its successor takes over. */
  readonly retires: number | undefined;
  /** When it disappears. */
  readonly expires: number | undefined;
}

interface KeyRow extends Row {
  readonly kid: string;
  readonly created: number;
  readonly activates: number;
  readonly retires: number | null;
  readonly expires: number | null;
}

/** Should the clock of this server be behind that of the one which brought in the only key, it uses the key early. */
export const FROM_CURRENT = `FROM signing_key WHERE retires IS NULL OR retires > $1
  ORDER BY activates > $1, activates DESC LIMIT 1`;
const CURRENT = `SELECT kid ${FROM_CURRENT}`;
const LIST = `SELECT kid, created, activates, retires, expires FROM signing_key
  WHERE expires IS NULL OR expires > $1 ORDER BY activates DESC, kid`;
const INSERT = `INSERT INTO signing_key (kid, created, activates, private_key, public_jwk)
  VALUES ($1, $2, $3, $4, $5)`;
const RETIRE = 'UPDATE signing_key SET retires = $1, expires = $2 WHERE retires IS NULL OR retires > $3';
const DELETE = 'DELETE FROM signing_key WHERE kid = $1';
const FORGET = 'DELETE FROM signing_key WHERE expires <= $1';

/** Those who change keys at the same time wait here for each other. */
const takeTurns = (tx: Transaction, now: number) => putSetting(tx, 'signing-keys.changed', String(now));

/** The id of the key that signs at this time. */
async function currentKey(db: Reader, now: number): Promise<string | undefined> {
  return (await db.get<{ kid: string }>(CURRENT, now))?.kid;
}

/** Every published key, the newest first. */
export async function listKeys(db: Reader, now: number): Promise<KeyInfo[]> {
  const current = await currentKey(db, now);
  return (await db.all<KeyRow>(LIST, now)).map(({ kid, created, activates, retires, expires }) => ({
    kid,
    state: kid === current ? 'current' : activates > now && (retires ?? Infinity) > now ? 'next' : 'retired',
    created,
    activates,
    retires: retires ?? undefined,
    expires: expires ?? undefined,
  }));
}

/** Makes the first key of a database, unless there is one. */
export async function ensureKey(store: Store, masterKey: Uint8Array, now: number): Promise<void> {
  if ((await currentKey(store.reader, now)) !== undefined) return;
  const fresh = await newKey(masterKey);
  await store.write(async (tx) => {
    await takeTurns(tx, now);
    if ((await currentKey(tx, now)) === undefined) await bringIn(tx, fresh, now, now);
  });
}

/** Brings in a new key: published at once, used from `activates` on. Answers its id. */
export async function rotateKeys(
  store: Store,
  masterKey: Uint8Array,
  now: number,
  activates = now + KEY_OVERLAP_MS,
): Promise<string> {
  const fresh = await newKey(masterKey);
  await store.write(async (tx) => {
    await takeTurns(tx, now);
    await bringIn(tx, fresh, now, activates);
  });
  return fresh.kid;
}

/**
 * Removes a key from publication: from now on no server accepts a token that it signed. A new one takes its place, at
 * once if it was in use. Answers whether there was such a key.
 */
export async function revokeKey(store: Store, masterKey: Uint8Array, kid: string, now: number): Promise<boolean> {
  const fresh = await newKey(masterKey);
  return store.write(async (tx) => {
    await takeTurns(tx, now);
    const revoked = (await listKeys(tx, now)).find((key) => key.kid === kid);
    if (revoked === undefined) return false;
    await tx.run(DELETE, kid);
    // Whoever remembers what a token is worth, as the registry does, forgets it.
    await putSetting(tx, ACCESS_VERSION, randomUUID());
    if (revoked.state === 'current') await bringIn(tx, fresh, now, now);
    if (revoked.state === 'next') await bringIn(tx, fresh, now, now + KEY_OVERLAP_MS);
    return true;
  });
}

interface FreshKey {
  readonly kid: string;
  readonly sealedPrivate: string;
  readonly publicJwk: JWK;
}

async function bringIn(tx: Transaction, fresh: FreshKey, now: number, activates: number): Promise<void> {
  // The overlap again, for servers whose clocks differ.
  await tx.run(RETIRE, activates, activates + TOKEN_LIFETIME_MS + KEY_OVERLAP_MS, now);
  await tx.run(INSERT, fresh.kid, now, activates, fresh.sealedPrivate, JSON.stringify(fresh.publicJwk));
  await tx.run(FORGET, now);
}

/** What the private part is sealed as: it opens in the place of no other secret. */
export const sealContext = (kid: string): string => `signing-key ${kid}`;

async function newKey(masterKey: Uint8Array): Promise<FreshKey> {
  const { privateKey, publicKey } = await promisify(generateKeyPair)('rsa', { modulusLength: 2048 });
  const jwk = publicKey.export({ format: 'jwk' }) as JWK;
  // RFC 7638, in hex because an id that begins with a dash looks like an option on a command line.
  const kid = Buffer.from(await calculateJwkThumbprint(jwk), 'base64url')
    .toString('hex')
    .slice(0, 32);
  return {
    kid,
    sealedPrivate: seal(masterKey, privateKey.export({ format: 'pem', type: 'pkcs8' }), sealContext(kid)),
    publicJwk: { ...jwk, kid, use: 'sig', alg: ALGORITHM },
  };
}
