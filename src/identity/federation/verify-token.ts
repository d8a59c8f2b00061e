import { hash } from 'node:crypto';
import { timestampMs } from '@bufbuild/protobuf/wkt';
import type { Clock } from '../../base/clock.ts';
import { canonicalIssuer } from '../../base/issuer-url.ts';
import { type KeySet, parseKeySet, usableKeys } from '../../base/jwks.ts';
import { createLru } from '../../base/lru.ts';
import type {
  Identity,
  Identity_ClaimMatch,
  Identity_StaticKeys,
} from '../../contract/gen/chainguard/platform/iam/v2/identities_pb.js';
import type { Claims } from '../tokens/jwt.ts';
import { createProofs, type OpenToken, type Refusal } from '../tokens/token-signature.ts';
import { hasAudience, issuerMatches, mismatch } from './claim-match.ts';
import type { Issuers } from './issuer-keys.ts';

export type Verdict =
  | { readonly claims: Claims; readonly refusal?: never }
  | { readonly refusal: Refusal; readonly claims?: never };

/** Judges tokens of third parties. */
export interface Verifier {
  /** What a token claims, true or not: enough to look for those it might speak of, and for nothing else. */
  unverifiedClaims(token: string): Verdict;
  /** Whether a token proves to be an identity. `ourAudience` is whom it must be meant for unless the identity says. */
  verify(token: string, identity: Identity, ourAudience: string): Promise<Verdict>;
  /** Whether a token is genuine and comes from this issuer. Whether it is meant for us is left to the caller. */
  verifyIssued(token: string, issuer: string): Promise<Verdict>;
}

export interface VerifierOptions {
  readonly issuers: Issuers;
  readonly clock: Clock;
}

const MAX_KEY_SETS = 1000;

export function createVerifier({ issuers, clock }: VerifierOptions): Verifier {
  const proofs = createProofs(clock);
  const keySets = createLru<string, KeySet>(MAX_KEY_SETS);

  function keySetOf(jwks: string): KeySet {
    const digest = hash('sha256', jwks, 'base64url');
    const known = keySets.get(digest);
    if (known) return known;
    const keys = usableKeys(parseKeySet(jwks) ?? []);
    keySets.set(digest, keys);
    return keys;
  }

  // The issuer comes first, for no other may be contacted. The rest is told only to those with a genuine token.
  async function byClaims(text: string, token: OpenToken, match: Identity_ClaimMatch, ourAudience: string) {
    const { iss = '' } = token.claims;
    if (!issuerMatches(match, iss)) return invalid('iss');
    const flaw = await proofs.flawOf(text, token, (header) => issuers.keysFor(iss, header));
    if (flaw) return flaw;
    const claim = mismatch(match, token.claims, ourAudience);
    return claim === undefined ? undefined : invalid(claim);
  }

  async function byStaticKeys(text: string, token: OpenToken, keys: Identity_StaticKeys, ourAudience: string) {
    const { iss, sub, aud } = token.claims;
    if (keys.expirationTime && timestampMs(keys.expirationTime) <= clock()) {
      return cannotLogIn('the keys of this identity have expired');
    }
    if (iss !== keys.issuer) return invalid('iss');
    const flaw = await proofs.flawOf(text, token, () => keySetOf(keys.issuerKeys));
    if (flaw) return flaw;
    if (sub !== keys.subject) return invalid('sub');
    const audiences = keys.audiences.length > 0 ? keys.audiences : [ourAudience];
    return hasAudience(aud, audiences) ? undefined : invalid('aud');
  }

  function refusalOf(text: string, token: OpenToken, { relationship }: Identity, ourAudience: string) {
    switch (relationship.case) {
      case 'claimMatch':
        return byClaims(text, token, relationship.value, ourAudience);
      case 'staticKeys':
        return byStaticKeys(text, token, relationship.value, ourAudience);
      case 'awsIdentity':
        return cannotLogIn('this is an AWS identity, and logging in as one is not possible yet');
      case 'servicePrincipal':
        return cannotLogIn('this is a service principal, and logging in as one is not possible yet');
      case undefined:
        return cannotLogIn('this identity does not say how it is proven');
    }
  }

  return {
    unverifiedClaims(text) {
      const token = proofs.open(text);
      return 'reason' in token ? { refusal: token } : { claims: token.claims };
    },

    async verify(text, identity, ourAudience) {
      const token = proofs.open(text);
      if ('reason' in token) return { refusal: token };
      const refusal = await refusalOf(text, token, identity, ourAudience);
      return refusal ? { refusal } : { claims: token.claims };
    },

    async verifyIssued(text, issuer) {
      const token = proofs.open(text);
      if ('reason' in token) return { refusal: token };
      if (canonicalIssuer(token.claims.iss ?? '') !== canonicalIssuer(issuer)) return { refusal: invalid('iss') };
      const refusal = await proofs.flawOf(text, token, (header) => issuers.keysFor(issuer, header));
      return refusal ? { refusal } : { claims: token.claims };
    },
  };
}

const invalid = (claim: string): Refusal => ({ kind: 'claim', claim, reason: `invalid "${claim}"` });
const cannotLogIn = (reason: string): Refusal => ({ kind: 'identity', reason });
