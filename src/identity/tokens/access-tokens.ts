import { createHash, randomUUID } from 'node:crypto';
import type { JWTPayload } from 'jose';
import { decodeProtectedHeader } from 'jose/decode/protected_header';
import * as errors from 'jose/errors';
import { decodeJwt } from 'jose/jwt/decode';
import { SignJWT } from 'jose/jwt/sign';
import { jwtVerify } from 'jose/jwt/verify';
import type { TokenScope } from '../../access/token-scope.ts';
import type { Clock } from '../../base/clock.ts';
import { type ApiError, unauthenticated } from '../../base/errors.ts';
import { createLru } from '../../base/lru.ts';
import { suffixOf, type Uid } from '../../base/uid.ts';
import { decodeCapabilitySet, encodeCapabilitySet } from '../../contract/capabilities.ts';
import type { LoginRecord, ProviderMembership } from '../login/login-validity.ts';
import { ACCESS_TOKEN_LIFETIME_MS } from './lifetimes.ts';
import { ALGORITHM } from './rotate-and-revoke-keys.ts';
import type { SigningKeys } from './signing-keys.ts';

/**
 * The identity that the issuer of a federated token authenticated: the `act` claim (RFC 8693, section 4.1). Existing
 * clients expect strings.
 */
export interface Actor {
  readonly iss: string;
  readonly sub: string;
  /** Several audiences are separated by commas. */
  readonly aud: string;
}

export interface Email {
  readonly address: string;
  readonly verified: boolean;
}

/** The content of an access token. Scopes and capabilities are absent when the token is not restricted. */
export interface AccessTokenClaims extends TokenScope, LoginRecord {
  readonly audiences: readonly string[];
  readonly act?: Actor | undefined;
  readonly email?: Email | undefined;
}

/** The content of a valid access token. Times are in milliseconds. */
export interface VerifiedAccessToken extends AccessTokenClaims {
  readonly issuedAt: number;
  readonly expires: number;
}

/** An access token or a refresh token, and its expiry time in milliseconds. */
export interface IssuedToken {
  readonly token: string;
  readonly expires: number;
}

/** A JWT by which this server authenticates itself to another server. */
export interface JwtAssertion {
  readonly subject: string;
  readonly audience: string;
  readonly claims: JWTPayload;
  readonly lifetimeMs: number;
}

export interface AccessTokens {
  /** Issues an access token. Its lifetime is one hour by default. It expires at `notAfter` at the latest. */
  issue(claims: AccessTokenClaims, lifetimeMs?: number, notAfter?: number): Promise<IssuedToken>;
  /** Signs an assertion. It cannot be used as an access token, because its subject is not an identity. */
  signAssertion(assertion: JwtAssertion): Promise<string>;
  /**
   * Returns the content of an access token, or undefined when another issuer issued the token. Throws UNAUTHENTICATED
   * when the token names this issuer and is not valid.
   */
  verify(token: string): Promise<VerifiedAccessToken | undefined>;
}

export interface AccessTokensOptions {
  readonly signingKeys: SigningKeys;
  readonly clock: Clock;
  /** The public URL of this server. */
  readonly issuer: string;
}

const LEEWAY_S = 60;
/** The token exchange limits its requests, so its tokens are far shorter. */
const MAX_LENGTH = 16 * 1024;
/** Verifying a signature is the most expensive part of a request, so verified tokens are cached until they expire. */
const MAX_CACHED = 10_000;
const KID = /^[0-9a-f]{32}$/;

export function createAccessTokens({ signingKeys, clock, issuer }: AccessTokensOptions): AccessTokens {
  const verifications = createLru<string, CachedVerification>(MAX_CACHED);

  async function verifySignature(token: string, kid: string, now: number): Promise<VerifiedAccessToken> {
    const key = await signingKeys.findPublicKey(kid);
    if (key === undefined) throw unknownKey();
    try {
      const { payload } = await jwtVerify(token, key, {
        algorithms: [ALGORITHM],
        typ: 'JWT',
        issuer,
        requiredClaims: ['sub', 'aud', 'exp', 'iat', 'nbf'],
        currentDate: new Date(now),
        clockTolerance: LEEWAY_S,
      });
      if ((payload.iat ?? 0) * 1000 > now + LEEWAY_S * 1000) throw invalidClaim('iat');
      return decodeClaims(payload);
    } catch (error) {
      throw toApiError(error);
    }
  }

  async function sign(claims: JWTPayload, lifetimeMs: number, notAfter = Infinity): Promise<IssuedToken> {
    const now = clock();
    const seconds = Math.floor(now / 1000);
    const expires = Math.min(Math.ceil((now + lifetimeMs) / 1000), Math.floor(notAfter / 1000));
    const { kid, privateKey } = await signingKeys.current();
    const token = await new SignJWT(claims)
      .setProtectedHeader({ alg: ALGORITHM, kid, typ: 'JWT' })
      .setIssuer(issuer)
      .setIssuedAt(seconds)
      .setNotBefore(seconds)
      .setExpirationTime(expires)
      .setJti(randomUUID())
      .sign(privateKey);
    return { token, expires: expires * 1000 };
  }

  return {
    issue: (claims, lifetimeMs = ACCESS_TOKEN_LIFETIME_MS, notAfter) =>
      sign({ ...encodePrivateClaims(claims), sub: claims.identity, aud: [...claims.audiences] }, lifetimeMs, notAfter),

    signAssertion: async ({ subject, audience, claims, lifetimeMs }) =>
      (await sign({ ...claims, sub: subject, aud: audience }, lifetimeMs)).token,

    async verify(token) {
      if (token.length > MAX_LENGTH) return undefined;
      const now = clock();
      const digest = createHash('sha256').update(token).digest('base64');
      let verification = verifications.get(digest);
      if (verification === undefined) {
        const kid = findKeyId(token, issuer);
        if (kid === undefined) return undefined;
        verification = { kid, verified: await verifySignature(token, kid, now) };
        verifications.set(digest, verification);
      } else if ((await signingKeys.findPublicKey(verification.kid)) === undefined) {
        verifications.delete(digest);
        throw unknownKey();
      }
      if (verification.verified.expires <= now) throw expired();
      return verification.verified;
    },
  };
}

interface CachedVerification {
  readonly kid: string;
  readonly verified: VerifiedAccessToken;
}

/** Returns the `kid` of a token that names `issuer`, and undefined for a token that does not. */
function findKeyId(token: string, issuer: string): string | undefined {
  let kid: unknown;
  try {
    if (decodeJwt(token).iss !== issuer) return undefined;
    kid = decodeProtectedHeader(token).kid;
  } catch {
    return undefined;
  }
  if (typeof kid !== 'string' || !KID.test(kid)) throw unknownKey();
  return kid;
}

const unknownKey = (): ApiError =>
  unauthenticated('the token is signed with a key that is unknown here or was revoked; get a new token');
const expired = (): ApiError => unauthenticated('the token has expired; get a new one');
const invalidClaim = (claim: string): ApiError => unauthenticated(`invalid "${claim}" in the token; get a new token`);

function toApiError(error: unknown): unknown {
  if (error instanceof errors.JWTExpired) return expired();
  if (error instanceof errors.JWTClaimValidationFailed) return invalidClaim(error.claim);
  if (error instanceof errors.JOSEError) {
    return unauthenticated('the signature of the token is not valid; get a new token');
  }
  return error;
}

/** Encodes the claims of this server beside the registered ones (RFC 7519, section 4.3). */
const encodePrivateClaims = (claims: AccessTokenClaims): JWTPayload => {
  const { scopes, capabilities, act, email, authenticatedAt, credentialFingerprint, provider, session } = claims;
  return {
    auth_time: Math.floor(authenticatedAt / 1000),
    proof: credentialFingerprint,
    ...(session !== undefined && { sid: suffixOf(session) }),
    ...(provider && { idp: provider }),
    ...(scopes && { scopes }),
    ...(capabilities !== undefined && { cap: encodeCapabilitySet(capabilities) }),
    ...(act && { act }),
    ...(email && { email: email.address, email_verified: email.verified }),
  };
};

/** Decodes claims that this server signed, so the private claims have the types of `encodePrivateClaims`. */
function decodeClaims(claims: JWTPayload): VerifiedAccessToken {
  const { sub = '', aud = [], iat = 0, exp = 0 } = claims;
  const {
    auth_time = 0,
    proof = '',
    sid,
    idp,
    scopes,
    cap,
    act,
    email,
    email_verified,
  } = claims as Partial<PrivateClaims>;
  const capabilities = cap === undefined ? undefined : decodeCapabilitySet(cap);
  // Without this check a restricted token with an unreadable restriction would become an unrestricted one.
  if (cap !== undefined && capabilities === undefined) throw invalidClaim('cap');
  return {
    identity: sub,
    audiences: [aud].flat(),
    scopes,
    capabilities,
    act,
    email: email === undefined ? undefined : { address: email, verified: email_verified === true },
    authenticatedAt: auth_time * 1000,
    credentialFingerprint: proof,
    session: sid === undefined ? undefined : `${sub}/${sid}`,
    provider: idp,
    issuedAt: iat * 1000,
    expires: exp * 1000,
  };
}

interface PrivateClaims {
  auth_time: number;
  /** The credential fingerprint. */
  proof: string;
  /** The last part of the uid of the session. */
  sid: string;
  idp: ProviderMembership;
  scopes: readonly Uid[];
  cap: string;
  act: Actor;
  email: string;
  email_verified: boolean;
}

/** Returns the token of an `authorization` value, with or without its `Bearer ` prefix. Empty when there is none. */
export const bearerToken = (authorization: string | undefined): string =>
  authorization?.replace(/^\s*bearer(?:\s+|$)/i, '').trim() ?? '';
