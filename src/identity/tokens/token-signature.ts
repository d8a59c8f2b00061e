import { hash } from 'node:crypto';
import type { Clock } from '../../base/clock.ts';
import { type KeySet, matchingKeys, type SignatureHeader } from '../../base/jwks.ts';
import { createLru } from '../../base/lru.ts';
import { OutgoingError } from '../outgoing/permitted-url.ts';
import { isSignedWith, type ParsedJwt, parseJwt, validityPeriodProblem } from './jwt.ts';

/** Why a third-party token is not accepted. */
export interface TokenRejection {
  /**
   * - `token`: the token is malformed, outside of its validity period or not correctly signed.
   * - `issuer`: the keys of the issuer cannot be fetched, so the signature cannot be verified.
   * - `claim`: the token is authentic, but `claim` does not match the identity.
   * - `identity`: no token is accepted for the identity.
   */
  readonly kind: 'token' | 'issuer' | 'claim' | 'identity';
  readonly claim?: string;
  /** For the sender of the token. */
  readonly reason: string;
}

/**
 * A token of another issuer, and the key sets that its signature was verified with. When the keys of an issuer are
 * fetched again, or an identity gets other keys, they are a new KeySet object and the signature is verified again. So
 * after a key is withdrawn, a cached token is accepted no longer than the cached key itself.
 */
export interface ThirdPartyToken extends ParsedJwt {
  readonly digest: string;
  readonly verifiedWith: WeakSet<KeySet>;
}

export type FindKeySet = (header: SignatureHeader) => KeySet | Promise<KeySet>;

export interface SignatureVerifier {
  parse(text: string): ThirdPartyToken | TokenRejection;
  /** Verifies validity period and signature. Returns undefined when both are valid. The audience is not checked. */
  verify(text: string, token: ThirdPartyToken, findKeySet: FindKeySet): Promise<TokenRejection | undefined>;
}

const MAX_CACHED = 5000;

/**
 * Verifies signatures of third-party tokens, which may be valid for at most `maxLifetimeMs`. Verified tokens are cached, so a repeated token costs no
 * cryptography.
 */
export function createSignatureVerifier(clock: Clock, maxLifetimeMs: number): SignatureVerifier {
  // Keyed by digest, so that the cache contains no usable credentials. Only verified tokens are cached, so that invalid
  // ones do not evict them.
  const verified = createLru<string, ThirdPartyToken>(MAX_CACHED);

  return {
    parse(text) {
      const digest = hash('sha256', text, 'base64url');
      const cached = verified.get(digest);
      if (cached) return cached;
      const token = parseJwt(text);
      if (typeof token === 'string') return rejectToken(token);
      return { ...token, digest, verifiedWith: new WeakSet() };
    },

    async verify(text, token, findKeySet) {
      const problem = validityPeriodProblem(token.claims, clock(), maxLifetimeMs);
      if (problem) return rejectToken(problem);
      const keys = await keySetOf(findKeySet, token);
      if ('reason' in keys) return keys;
      if (token.verifiedWith.has(keys)) return undefined;
      const candidates = matchingKeys(keys, token.header);
      if (candidates.length === 0) return rejectToken('the token is signed with an unknown key; get a new token');
      for (const key of candidates) {
        if (!(await isSignedWith(text, key))) continue;
        token.verifiedWith.add(keys);
        verified.set(token.digest, token);
        return undefined;
      }
      return rejectToken('the signature of the token is not valid; get a new token');
    },
  };
}

async function keySetOf(findKeySet: FindKeySet, { header, claims }: ParsedJwt): Promise<KeySet | TokenRejection> {
  try {
    return await findKeySet(header);
  } catch (error) {
    if (!(error instanceof OutgoingError)) throw error;
    return { kind: 'issuer', reason: `the keys of ${claims.iss} cannot be fetched: ${error.message}` };
  }
}

const rejectToken = (reason: string): TokenRejection => ({ kind: 'token', reason });
