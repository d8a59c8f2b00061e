import { createHash } from 'node:crypto';
import { create, toBinary } from '@bufbuild/protobuf';
import { timestampMs } from '@bufbuild/protobuf/wkt';
import type { Grant } from '../../access/create-caller.ts';
import { ApiError, Code, unauthenticated } from '../../base/errors.ts';
import { isWithin, type ParentUid } from '../../base/uid.ts';
import { type Identity, IdentitySchema } from '../../contract/gen/chainguard/platform/iam/v2/identities_pb.js';
import { disabledOf } from '../../domains/iam/disabled.ts';
import { endedLoginsOf } from '../../domains/iam/identities/ended-logins.ts';
import { identities } from '../../domains/iam/identities/identities.ts';
import type { Stored } from '../../resource/definition.ts';
import { find } from '../../resource/read.ts';
import type { Reader } from '../../store/store.ts';
import { isSessionOpen } from '../tokens/sessions.ts';
import { findEndedGroups, requireProvider } from './provider-validity.ts';

/** What access tokens and refresh tokens record about the login that they were issued from. */
export interface LoginRecord {
  readonly identity: string;
  /** The time of the login in milliseconds. */
  readonly authenticatedAt: number;
  /** The result of `credentialFingerprintOf` at that time. */
  readonly credentialFingerprint: string;
  /** The uid of the session that the login began. Absent for a registry token that a federated token was exchanged for. */
  readonly session?: string | undefined;
  /** Present when the login was through an identity provider. */
  readonly provider?: ProviderMembership | undefined;
}

/** The uid of an identity provider, and those groups of a user there that are mapped to roles. */
export interface ProviderMembership {
  readonly uid: string;
  readonly groups: readonly string[];
}

/** The identity of a valid login. */
export interface ValidLogin {
  readonly identity: Stored<Identity>;
  /** Returns the grants that the login gives, of those that the identity has. */
  effective(grants: readonly Grant[]): readonly Grant[];
}

/**
 * Returns a digest of what an identity authenticates with. It changes when the identity accepts other tokens, and when
 * all its logins are ended.
 */
export function credentialFingerprintOf({ message, state }: Pick<Stored<Identity>, 'message' | 'state'>): string {
  const { relationship } = message;
  return createHash('sha256')
    .update(toBinary(IdentitySchema, create(IdentitySchema, { relationship })))
    .update(endedLoginsOf(state)?.epoch ?? '')
    .digest('base64url')
    .slice(0, 22);
}

/**
 * Revokes tokens: each request and each refresh calls it, and it refuses a token whose login would not succeed now:
 *
 * - The identity was deleted or disabled.
 * - The identity accepts other credentials than at the time of the login, or all its logins were ended.
 * - The static keys of the identity have expired.
 * - The identity provider was deleted or disabled, or has another issuer.
 * - The session was ended, or has expired.
 *
 * `federatedIssuedAt` is given for a federated token: it is refused if all logins were ended after it was issued.
 */
export async function requireValidLogin(
  db: Reader,
  login: LoginRecord,
  now: number,
  federatedIssuedAt?: number,
): Promise<ValidLogin> {
  const stored = await find(db, identities, login.identity);
  // A user who was deleted and registers again gets the same uid, but earlier tokens stay invalid. JWT times are whole
  // seconds.
  if (!stored || Math.floor(stored.created / 1000) * 1000 > login.authenticatedAt) {
    throw unauthenticated('the identity of this token was deleted; log in as another identity');
  }
  requireEnabled(stored);
  const ended = endedLoginsOf(stored.state);
  // JWT times are whole seconds.
  if (ended && federatedIssuedAt !== undefined && federatedIssuedAt < Math.floor(ended.time / 1000) * 1000) {
    throw unauthenticated('the sessions of this identity were ended after this token was issued; get a new token');
  }
  if (credentialFingerprintOf(stored) !== login.credentialFingerprint) {
    throw unauthenticated(
      (ended?.time ?? 0) >= login.authenticatedAt
        ? 'the sessions of this identity were ended; log in again'
        : 'the identity of this token accepts other credentials now; log in again',
    );
  }
  const { relationship } = stored.message;
  const expiry = relationship.case === 'staticKeys' ? relationship.value.expirationTime : undefined;
  if (expiry && timestampMs(expiry) <= now) {
    throw unauthenticated('the static keys of the identity of this token have expired; update the identity');
  }
  if (login.session !== undefined && !(await isSessionOpen(db, login.session, now))) {
    throw unauthenticated('the session of this token was ended; log in again');
  }
  return withProviders(db, stored, login.provider);
}

/**
 * Returns the access of an identity that is not logged in now, such as the maker of a subscription. Undefined when it is
 * disabled, or when its identity provider has ended its access.
 */
export async function findActiveIdentity(
  db: Reader,
  identity: Stored<Identity>,
  provider: ProviderMembership | undefined,
): Promise<ValidLogin | undefined> {
  try {
    requireEnabled(identity);
    return await withProviders(db, identity, provider);
  } catch (error) {
    if (error instanceof ApiError && error.code === Code.UNAUTHENTICATED) return undefined;
    throw error;
  }
}

/** Refuses a disabled identity. */
export function requireEnabled(stored: Stored | undefined): void {
  if (!disabledOf(stored?.state)) return;
  throw unauthenticated('this identity is disabled; ask an operator of the server to enable it');
}

async function withProviders(
  db: Reader,
  identity: Stored<Identity>,
  provider: ProviderMembership | undefined,
): Promise<ValidLogin> {
  if (provider) await requireProvider(db, identity, provider.uid);
  const ended = await findEndedGroups(db, identity);
  return { identity, effective: (grants) => (ended.length === 0 ? grants : outside(grants, ended)) };
}

const outside = (grants: readonly Grant[], groups: readonly ParentUid[]): readonly Grant[] =>
  grants.filter((grant) => !groups.some((group) => isWithin(grant.group, group)));
