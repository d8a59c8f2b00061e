import { createPrivateKey, createPublicKey, type JsonWebKey, type KeyObject } from 'node:crypto';
import type { JSONWebKeySet, JWK } from 'jose';
import type { Clock } from '../../base/clock.ts';
import { createLru } from '../../base/lru.ts';
import { open } from '../../base/secretbox.ts';
import type { Store } from '../../store/store.ts';
import { ensureKey, FROM_CURRENT, sealContext } from './key-rotation.ts';

export interface SigningKey {
  readonly kid: string;
  readonly privateKey: KeyObject;
}

/** The keys as they are at this moment, on every server of the database. */
export interface SigningKeys {
  /** The one to sign with. */
  current(): Promise<SigningKey>;
  /** What checks the signatures of a published key; nothing once it was revoked or has expired. */
  published(kid: string): Promise<KeyObject | undefined>;
  /** All public keys, for others. */
  publicKeys(): Promise<JSONWebKeySet>;
}

const CURRENT = `SELECT kid, private_key ${FROM_CURRENT}`;
const PUBLIC = 'SELECT public_jwk FROM signing_key WHERE kid = $1 AND (expires IS NULL OR expires > $2)';
const ALL_PUBLIC = `SELECT public_jwk FROM signing_key WHERE expires IS NULL OR expires > $1
  ORDER BY activates DESC, kid`;

/** More than rotation ever leaves side by side. */
const MAX_IMPORTED = 32;

export interface SigningKeysOptions {
  readonly store: Store;
  readonly masterKey: Uint8Array;
  readonly clock: Clock;
}

/**
 * Opens the keys of the database and makes the first one. Which keys are good is asked anew each time: one key look-up, so that
 * a rotation or revocation on any server holds for the very next request. Only what never changes is kept: the keys themselves.
 */
export async function createSigningKeys({ store, masterKey, clock }: SigningKeysOptions): Promise<SigningKeys> {
  await ensureKey(store, masterKey, clock());
  const { reader } = store;
  const imported = createLru<string, KeyObject>(MAX_IMPORTED);
  let signing: SigningKey | undefined;

  return {
    async current() {
      const row = await reader.get<{ kid: string; private_key: string }>(CURRENT, clock());
      if (row === undefined) throw new Error('the database has no signing key');
      const { kid, private_key: sealed } = row;
      if (signing?.kid !== kid) {
        signing = { kid, privateKey: createPrivateKey(open(masterKey, sealed, sealContext(kid))) };
      }
      return signing;
    },

    async published(kid) {
      const row = await reader.get<{ public_jwk: string }>(PUBLIC, kid, clock());
      if (row === undefined) return undefined;
      const known = imported.get(kid);
      if (known !== undefined) return known;
      const key = createPublicKey({ key: JSON.parse(row.public_jwk) as JsonWebKey, format: 'jwk' });
      imported.set(kid, key);
      return key;
    },

    async publicKeys() {
      const rows = await reader.all<{ public_jwk: string }>(ALL_PUBLIC, clock());
      return { keys: rows.map(({ public_jwk }) => JSON.parse(public_jwk) as JWK) };
    },
  };
}
