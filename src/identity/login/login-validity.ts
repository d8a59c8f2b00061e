import { createHash } from 'node:crypto';
import { create, toBinary } from '@bufbuild/protobuf';
import { timestampMs } from '@bufbuild/protobuf/wkt';
import { unauthenticated } from '../../base/errors.ts';
import { type Identity, IdentitySchema } from '../../contract/gen/chainguard/platform/iam/v2/identities_pb.js';
import { identities } from '../../domains/iam/identities/identities.ts';
import { identityProviders } from '../../domains/iam/identity-providers/identity-providers.ts';
import { find } from '../../resource/read.ts';
import type { Reader } from '../../store/store.ts';

/** What a token of ours or a refresh token remembers of the login it comes from. */
export interface Standing {
  readonly identity: string;
  /** When the login was, in milliseconds. */
  readonly authenticated: number;
  /** What the identity was proven by then. */
  readonly proof: string;
  /** Through which identity provider it was, if any. */
  readonly provider?: Provider | undefined;
}

/** An identity provider of ours, and those groups of a person at it that are worth a role here. */
export interface Provider {
  readonly uid: string;
  readonly groups: readonly string[];
}

/** A digest of how an identity is proven. It changes when other tokens than before are accepted for it. */
export const proofOf = ({ relationship }: Identity): string =>
  createHash('sha256')
    .update(toBinary(IdentitySchema, create(IdentitySchema, { relationship })))
    .digest('base64url')
    .slice(0, 22);

/**
 * Refuses a login whose identity is gone, is proven in another way by now, or would not be let in any more: whoever
 * takes a login away takes its tokens along.
 */
export async function requireStanding(db: Reader, login: Standing, now: number): Promise<Identity> {
  const stored = await find(db, identities, login.identity);
  // A person who left and came back has the same uid; what was issued before stays lost. Tokens know whole seconds only.
  if (!stored || Math.floor(stored.created / 1000) * 1000 > login.authenticated) {
    throw unauthenticated('the identity of this token was deleted');
  }
  const identity = stored.message as Identity;
  if (proofOf(identity) !== login.proof) {
    throw unauthenticated('the identity of this token is proven in another way by now; log in again');
  }
  const { relationship } = identity;
  const expiry = relationship.case === 'staticKeys' ? relationship.value.expirationTime : undefined;
  if (expiry && timestampMs(expiry) <= now) throw unauthenticated('the identity of this token has expired');
  if (login.provider && !(await find(db, identityProviders, login.provider.uid))) {
    throw unauthenticated('the identity provider of this token was deleted');
  }
  return identity;
}
