import { hash } from 'node:crypto';
import { timestampMs } from '@bufbuild/protobuf/wkt';
import type { Clock } from '../../base/clock.ts';
import { canonicalIssuer } from '../../base/issuer-url.ts';
import { type KeySet, parseKeySet, usableKeys } from '../../base/jwks.ts';
import { createLru } from '../../base/lru.ts';
import type { PatternBudget } from '../../base/pattern.ts';
import type {
  Identity,
  Identity_ClaimMatch,
  Identity_StaticKeys,
} from '../../contract/gen/chainguard/platform/iam/v2/identities_pb.js';
import type { JwtClaims } from '../tokens/jwt.ts';
import { createSignatureVerifier, type ThirdPartyToken, type TokenRejection } from '../tokens/token-signature.ts';
import { findMismatchedClaim, hasAudience, issuerMatches, mismatchMessage } from './claim-match.ts';
import type { IssuerKeys } from './issuer-keys.ts';

export type TokenVerification =
  | { readonly claims: JwtClaims; readonly rejection?: never }
  | { readonly rejection: TokenRejection; readonly claims?: never };

/** Verifies tokens of other issuers. */
export interface FederatedTokenVerifier {
  /** Decodes a token without verifying it. Use the claims only to find the identity or issuer to verify with. */
  unverifiedClaims(token: string): TokenVerification;
  /**
   * Verifies that a token authenticates an identity. `defaultAudience` applies when the identity names no audience. A
   * pattern for which `budget` is not enough does not match.
   */
  verify(
    token: string,
    identity: Identity,
    defaultAudience: string,
    budget?: PatternBudget,
  ): Promise<TokenVerification>;
  /** Verifies that a token was issued by this issuer. The audience is not checked. */
  verifyIssuedBy(token: string, issuer: string): Promise<TokenVerification>;
}

export interface FederatedTokenVerifierOptions {
  readonly issuerKeys: IssuerKeys;
  readonly clock: Clock;
  /** The longest time for which a token may be valid, in milliseconds. */
  readonly maxLifetimeMs: number;
}

const MAX_KEY_SETS = 1000;

export function createFederatedTokenVerifier(options: FederatedTokenVerifierOptions): FederatedTokenVerifier {
  const { issuerKeys, clock, maxLifetimeMs } = options;
  const signatures = createSignatureVerifier(clock, maxLifetimeMs);
  const staticKeySets = createLru<string, KeySet>(MAX_KEY_SETS);

  function staticKeySetOf(jwks: string): KeySet {
    const digest = hash('sha256', jwks, 'base64url');
    const cached = staticKeySets.get(digest);
    if (cached) return cached;
    const keys = usableKeys(parseKeySet(jwks) ?? []);
    staticKeySets.set(digest, keys);
    return keys;
  }

  // The issuer is checked first, because only issuers that an identity names may be contacted. The other claims are
  // checked after the signature, so that only the holder of an authentic token learns whether they match.
  async function verifyClaimMatch(
    text: string,
    token: ThirdPartyToken,
    match: Identity_ClaimMatch,
    audience: string,
    budget: PatternBudget | undefined,
  ) {
    const { iss = '' } = token.claims;
    if (!issuerMatches(match, iss, budget)) return rejectClaim('iss');
    const rejection = await signatures.verify(text, token, (header) => issuerKeys.keysFor(iss, header));
    if (rejection) return rejection;
    const claim = findMismatchedClaim(match, token.claims, audience, budget);
    return claim === undefined ? undefined : rejectClaim(claim);
  }

  async function verifyStaticKeys(text: string, token: ThirdPartyToken, keys: Identity_StaticKeys, audience: string) {
    const { iss, sub, aud } = token.claims;
    if (keys.expirationTime && timestampMs(keys.expirationTime) <= clock()) {
      return rejectIdentity('the static keys of this identity have expired; update the identity');
    }
    if (iss !== keys.issuer) return rejectClaim('iss');
    const rejection = await signatures.verify(text, token, () => staticKeySetOf(keys.issuerKeys));
    if (rejection) return rejection;
    if (sub !== keys.subject) return rejectClaim('sub');
    const audiences = keys.audiences.length > 0 ? keys.audiences : [audience];
    return hasAudience(aud, audiences) ? undefined : rejectClaim('aud');
  }

  function verifyFor(
    text: string,
    token: ThirdPartyToken,
    identity: Identity,
    defaultAudience: string,
    budget: PatternBudget | undefined,
  ) {
    const { relationship } = identity;
    switch (relationship.case) {
      case 'claimMatch':
        return verifyClaimMatch(text, token, relationship.value, defaultAudience, budget);
      case 'staticKeys':
        return verifyStaticKeys(text, token, relationship.value, defaultAudience);
      case 'awsIdentity':
      case 'servicePrincipal':
      case undefined:
        return rejectIdentity(
          loginUnsupportedMessage(identity) ?? 'this identity has no relationship; update it to match token claims',
        );
    }
  }

  return {
    unverifiedClaims(text) {
      const token = signatures.parse(text);
      return 'reason' in token ? { rejection: token } : { claims: token.claims };
    },

    async verify(text, identity, defaultAudience, budget) {
      const token = signatures.parse(text);
      if ('reason' in token) return { rejection: token };
      const rejection = await verifyFor(text, token, identity, defaultAudience, budget);
      return rejection ? { rejection } : { claims: token.claims };
    },

    async verifyIssuedBy(text, issuer) {
      const token = signatures.parse(text);
      if ('reason' in token) return { rejection: token };
      if (canonicalIssuer(token.claims.iss ?? '') !== canonicalIssuer(issuer)) return { rejection: rejectClaim('iss') };
      const rejection = await signatures.verify(text, token, (header) => issuerKeys.keysFor(issuer, header));
      return rejection ? { rejection } : { claims: token.claims };
    },
  };
}

const UNSUPPORTED_RELATIONSHIPS: Readonly<Record<string, string>> = {
  awsIdentity: 'AWS identities',
  servicePrincipal: 'service principals',
};

/** Returns an error message for an identity that this server has no login for, and undefined for all others. */
export function loginUnsupportedMessage({ relationship }: Identity): string | undefined {
  const identities = UNSUPPORTED_RELATIONSHIPS[relationship.case ?? ''];
  return identities && `${identities} cannot log in on this server yet; use an identity that matches token claims`;
}

const rejectClaim = (claim: string): TokenRejection => ({ kind: 'claim', claim, reason: mismatchMessage(claim) });
const rejectIdentity = (reason: string): TokenRejection => ({ kind: 'identity', reason });
