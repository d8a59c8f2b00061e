import { createHash } from 'node:crypto';
import { create, toBinary } from '@bufbuild/protobuf';
import { timestampMs } from '@bufbuild/protobuf/wkt';
import { unauthenticated } from '../../base/errors.ts';
import { type Identity, IdentitySchema } from '../../contract/gen/chainguard/platform/iam/v2/identities_pb.js';
import { identities } from '../../domains/iam/identities/identities.ts';
import { identityProviders } from '../../domains/iam/identity-providers/identity-providers.ts';
import { find } from '../../resource/read.ts';
import type { Reader } from '../../store/store.ts';
import { isSessionOpen } from '../tokens/sessions.ts';

/** What access tokens and refresh tokens record about the login that they were issued from. */
export interface LoginRecord {
  readonly identity: string;
  /** The time of the login in milliseconds. */
  readonly authenticatedAt: number;
  /** The result of `credentialFingerprintOf` at that time. */
  readonly credentialFingerprint: string;
  /** The uid of the session that the login began. Absent for tokens that a federated token was exchanged for without one. */
  readonly session?: string | undefined;
  /** Present when the login was through an identity provider. */
  readonly provider?: ProviderMembership | undefined;
}

/** The uid of an identity provider, and those groups of a user there that are mapped to roles. */
export interface ProviderMembership {
  readonly uid: string;
  readonly groups: readonly string[];
}

/** Returns a digest of what an identity authenticates with. It changes when the identity accepts other tokens. */
export const credentialFingerprintOf = ({ relationship }: Identity): string =>
  createHash('sha256')
    .update(toBinary(IdentitySchema, create(IdentitySchema, { relationship })))
    .digest('base64url')
    .slice(0, 22);

/**
 * Revokes tokens: each request and each refresh calls it, and it refuses a token whose login would not succeed now:
 *
 * - The identity was deleted.
 * - The identity accepts other credentials than at the time of the login.
 * - The static keys of the identity have expired.
 * - The identity provider was deleted.
 * - The session was ended, or has expired.
 */
export async function requireValidLogin(db: Reader, login: LoginRecord, now: number): Promise<Identity> {
  const stored = await find(db, identities, login.identity);
  // A user who was deleted and registers again gets the same uid, but earlier tokens stay invalid. JWT times are whole
  // seconds.
  if (!stored || Math.floor(stored.created / 1000) * 1000 > login.authenticatedAt) {
    throw unauthenticated('the identity of this token was deleted; log in as another identity');
  }
  const identity = stored.message;
  if (credentialFingerprintOf(identity) !== login.credentialFingerprint) {
    throw unauthenticated('the identity of this token accepts other credentials now; log in again');
  }
  const { relationship } = identity;
  const expiry = relationship.case === 'staticKeys' ? relationship.value.expirationTime : undefined;
  if (expiry && timestampMs(expiry) <= now) {
    throw unauthenticated('the static keys of the identity of this token have expired; update the identity');
  }
  if (login.provider && !(await find(db, identityProviders, login.provider.uid))) {
    throw unauthenticated('the identity provider of this token was deleted; log in through another one');
  }
  if (login.session !== undefined && !(await isSessionOpen(db, login.session, now))) {
    throw unauthenticated('the session of this token was ended; log in again');
  }
  return identity;
}
