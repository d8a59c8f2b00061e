import { createPrivateKey, createPublicKey, type JsonWebKey, type KeyObject } from 'node:crypto';
import type { JSONWebKeySet, JWK } from 'jose';
import type { Clock } from '../../base/clock.ts';
import { createLru } from '../../base/lru.ts';
import { open } from '../../base/secretbox.ts';
import type { Store } from '../../store/store.ts';
import { ensureKey, FROM_CURRENT_KEY, sealContext } from './rotate-and-revoke-keys.ts';

export interface SigningKey {
  readonly kid: string;
  readonly privateKey: KeyObject;
}

/** The signing keys in the database, which all servers share. Every call reads the current state. */
export interface SigningKeys {
  /** Returns the key to sign with. */
  current(): Promise<SigningKey>;
  /** Returns the public key of a published key. Undefined when the key was revoked or has expired. */
  findPublicKey(kid: string): Promise<KeyObject | undefined>;
  /** Returns all published public keys. */
  publicKeys(): Promise<JSONWebKeySet>;
}

const CURRENT = `SELECT kid, private_key ${FROM_CURRENT_KEY}`;
const PUBLIC = 'SELECT public_jwk FROM signing_key WHERE kid = $1 AND (expires IS NULL OR expires > $2)';
const ALL_PUBLIC = `SELECT public_jwk FROM signing_key WHERE expires IS NULL OR expires > $1
  ORDER BY activates DESC, kid`;

/** More keys than rotation leaves published at the same time. */
const MAX_IMPORTED = 32;

export interface SigningKeysOptions {
  readonly store: Store;
  readonly masterKey: Uint8Array;
  readonly clock: Clock;
}

/**
 * Reads the signing keys from the database and creates the first one. Each call looks up by primary key which keys are
 * valid, so that a rotation or revocation on any server applies to the next request. Only imported keys are cached,
 * because they never change.
 */
export async function createSigningKeys({ store, masterKey, clock }: SigningKeysOptions): Promise<SigningKeys> {
  await ensureKey(store, masterKey, clock());
  const { reader } = store;
  const imported = createLru<string, KeyObject>(MAX_IMPORTED);
  let currentKey: SigningKey | undefined;

  return {
    async current() {
      const row = await reader.get<{ kid: string; private_key: string }>(CURRENT, clock());
      if (row === undefined) throw new Error('the database has no signing key');
      const { kid, private_key: sealed } = row;
      if (currentKey?.kid !== kid) {
        currentKey = { kid, privateKey: createPrivateKey(open(masterKey, sealed, sealContext(kid))) };
      }
      return currentKey;
    },

    async findPublicKey(kid) {
      const row = await reader.get<{ public_jwk: string }>(PUBLIC, kid, clock());
      if (row === undefined) return undefined;
      const cached = imported.get(kid);
      if (cached !== undefined) return cached;
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
