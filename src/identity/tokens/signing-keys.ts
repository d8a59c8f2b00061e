import { createPrivateKey, createPublicKey, type JsonWebKey, type KeyObject } from 'node:crypto';
import type { JSONWebKeySet, JWK } from 'jose';
import type { Clock } from '../../base/clock.ts';
import type { Log } from '../../base/log.ts';
import { createLru } from '../../base/lru.ts';
import type { Row, Store } from '../../store/store.ts';
import type { MasterKeys } from '../master-key.ts';
import { ensureKey, FROM_CURRENT_KEY, isRotationDue, rotateDueKey, sealContext } from './rotate-and-revoke-keys.ts';

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

const CURRENT = `SELECT kid, private_key, activates, retires ${FROM_CURRENT_KEY}`;
const PUBLIC = 'SELECT public_jwk FROM signing_key WHERE kid = $1 AND (expires IS NULL OR expires > $2)';
const ALL_PUBLIC = `SELECT public_jwk FROM signing_key WHERE expires IS NULL OR expires > $1
  ORDER BY activates DESC, kid`;

/** More keys than rotation leaves published at the same time. */
const MAX_IMPORTED = 32;

export interface SigningKeysOptions {
  readonly store: Store;
  readonly masterKeys: MasterKeys;
  readonly clock: Clock;
  /** After how many milliseconds a key is replaced. Infinity when keys are not replaced by themselves. */
  readonly maxAgeMs?: number;
  readonly log?: Pick<Log, 'info' | 'warn'>;
}

interface CurrentKeyRow extends Row {
  readonly kid: string;
  readonly private_key: string;
  readonly activates: number;
  readonly retires: number | null;
}

/** How long to wait after a failed rotation. */
const RETRY_MS = 60_000;

/**
 * Reads the signing keys from the database and creates the first one. Each call looks up by primary key which keys are
 * valid, so that a rotation or revocation on any server applies to the next request. Only imported keys are cached,
 * because they never change.
 */
export async function createSigningKeys(options: SigningKeysOptions): Promise<SigningKeys> {
  const { store, masterKeys, clock, maxAgeMs = Infinity, log } = options;
  await ensureKey(store, masterKeys, clock());
  const { reader } = store;
  const imported = createLru<string, KeyObject>(MAX_IMPORTED);
  let currentKey: SigningKey | undefined;

  let nextAttempt = Number.NEGATIVE_INFINITY;

  /**
   * Adds the successor of a key that has reached its age. Called when a token is signed, so that no timer is needed: one
   * token in that time waits for it. A failure does not fail the token.
   */
  async function rotateIfDue(current: CurrentKeyRow, now: number): Promise<void> {
    if (!isRotationDue(current, maxAgeMs, now) || now < nextAttempt) return;
    nextAttempt = now + RETRY_MS;
    try {
      await rotateDueKey(store, masterKeys, maxAgeMs, now);
      log?.info({ kid: current.kid }, 'the signing key has reached its age; its successor is published');
    } catch (error) {
      log?.warn({ error }, 'cannot rotate the signing key');
    }
  }

  return {
    async current() {
      const now = clock();
      const row = await reader.get<CurrentKeyRow>(CURRENT, now);
      if (row === undefined) throw new Error('the database has no signing key');
      await rotateIfDue(row, now);
      const { kid, private_key: sealed } = row;
      if (currentKey?.kid === kid) return currentKey;
      const key = { kid, privateKey: createPrivateKey(await masterKeys.open(sealed, sealContext(kid))) };
      currentKey = key;
      return key;
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
