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
import { decodeSet, encodeSet } from '../../contract/capabilities.ts';
import type { Provider, Standing } from '../login/login-validity.ts';
import { ALGORITHM } from './key-rotation.ts';
import { TOKEN_LIFETIME_MS } from './lifetimes.ts';
import type { SigningKeys } from './signing-keys.ts';

/** Who somebody was to the issuer that vouched for them: the `act` claim, whose members are texts for existing clients. */
export interface Actor {
  readonly iss: string;
  readonly sub: string;
  /** Several are separated by commas. */
  readonly aud: string;
}

export interface Email {
  readonly address: string;
  readonly verified: boolean;
}

/** What a token of ours says. Where it was not narrowed, scopes and capabilities are absent. */
export interface TokenContent extends TokenScope, Standing {
  readonly audiences: readonly string[];
  readonly act?: Actor | undefined;
  readonly email?: Email | undefined;
}

/** A token of ours that is good. Times are in milliseconds. */
export interface OwnToken extends TokenContent {
  readonly issuedAt: number;
  readonly expires: number;
}

export interface MintedToken {
  readonly token: string;
  readonly expires: number;
}

export interface Attestation {
  readonly subject: string;
  readonly audience: string;
  readonly claims: JWTPayload;
  readonly lifetimeMs: number;
}

export interface Tokens {
  /** For an hour, unless the token is for one short task. */
  mint(content: TokenContent, lifetimeMs?: number): Promise<MintedToken>;
  /** Signs claims that others verify. Such a token lets nobody in here: its subject is no identity. */
  attest(attestation: Attestation): Promise<string>;
  /** What a token of ours says; nothing for one that is not ours. Throws UNAUTHENTICATED for one that is ours and not good. */
  verify(token: string): Promise<OwnToken | undefined>;
}

export interface TokensOptions {
  readonly signingKeys: SigningKeys;
  readonly clock: Clock;
  /** The public URL of this server. */
  readonly issuer: () => string;
}

const LEEWAY_S = 60;
/** The exchange never makes one nearly as long. */
const MAX_LENGTH = 16 * 1024;
/** Checking a signature costs more than all else about a request, so good ones are remembered until their end. */
const MAX_REMEMBERED = 10_000;
const KID = /^[0-9a-f]{32}$/;

export function createTokens({ signingKeys, clock, issuer }: TokensOptions): Tokens {
  const remembered = createLru<string, Verified>(MAX_REMEMBERED);

  async function verifySignature(token: string, kid: string, now: number): Promise<OwnToken> {
    const key = await signingKeys.published(kid);
    if (key === undefined) throw unknownKey();
    try {
      const { payload } = await jwtVerify(token, key, {
        algorithms: [ALGORITHM],
        typ: 'JWT',
        issuer: issuer(),
        requiredClaims: ['sub', 'aud', 'exp', 'iat', 'nbf'],
        currentDate: new Date(now),
        clockTolerance: LEEWAY_S,
      });
      if ((payload.iat ?? 0) * 1000 > now + LEEWAY_S * 1000) throw unauthenticated('invalid "iat" in the token');
      return read(payload);
    } catch (error) {
      throw explain(error);
    }
  }

  async function sign(claims: JWTPayload, lifetimeMs: number): Promise<MintedToken> {
    const now = clock();
    const seconds = Math.floor(now / 1000);
    const expires = Math.ceil((now + lifetimeMs) / 1000);
    const { kid, privateKey } = await signingKeys.current();
    const token = await new SignJWT(claims)
      .setProtectedHeader({ alg: ALGORITHM, kid, typ: 'JWT' })
      .setIssuer(issuer())
      .setIssuedAt(seconds)
      .setNotBefore(seconds)
      .setExpirationTime(expires)
      .setJti(randomUUID())
      .sign(privateKey);
    return { token, expires: expires * 1000 };
  }

  return {
    mint: (content, lifetimeMs = TOKEN_LIFETIME_MS) =>
      sign({ ...write(content), sub: content.identity, aud: [...content.audiences] }, lifetimeMs),

    attest: async ({ subject, audience, claims, lifetimeMs }) =>
      (await sign({ ...claims, sub: subject, aud: audience }, lifetimeMs)).token,

    async verify(token) {
      if (token.length > MAX_LENGTH) return undefined;
      const now = clock();
      const digest = createHash('sha256').update(token).digest('base64');
      let verified = remembered.get(digest);
      if (verified === undefined) {
        const kid = ownKey(token, issuer());
        if (kid === undefined) return undefined;
        verified = { kid, content: await verifySignature(token, kid, now) };
        remembered.set(digest, verified);
      } else if ((await signingKeys.published(verified.kid)) === undefined) {
        remembered.delete(digest);
        throw unknownKey();
      }
      if (verified.content.expires <= now) throw expired();
      return verified.content;
    },
  };
}

interface Verified {
  readonly kid: string;
  readonly content: OwnToken;
}

/** The id of the key that a token of ours claims to be signed with; nothing when the token does not claim to be ours. */
function ownKey(token: string, issuer: string): string | undefined {
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
  unauthenticated('the token is signed with a key that is unknown here or was revoked; get a new one');
const expired = (): ApiError => unauthenticated('the token has expired; get a new one');

function explain(error: unknown): unknown {
  if (error instanceof errors.JWTExpired) return expired();
  if (error instanceof errors.JWTClaimValidationFailed) return unauthenticated(`invalid "${error.claim}" in the token`);
  if (error instanceof errors.JOSEError) return unauthenticated('the signature of the token is not valid');
  return error;
}

/** The claims of our own, beside the registered ones of RFC 7519. */
const write = ({ scopes, capabilities, act, email, authenticated, proof, provider }: TokenContent): JWTPayload => ({
  auth_time: Math.floor(authenticated / 1000),
  proof,
  ...(provider && { idp: provider }),
  ...(scopes && { scopes }),
  ...(capabilities !== undefined && { cap: encodeSet(capabilities) }),
  ...(act && { act }),
  ...(email && { email: email.address, email_verified: email.verified }),
});

/** The claims of a token whose signature is ours, so they are as `write` made them. */
function read(claims: JWTPayload): OwnToken {
  const { sub = '', aud = [], iat = 0, exp = 0 } = claims;
  const { auth_time = 0, proof = '', idp, scopes, cap, act, email, email_verified } = claims as Partial<Written>;
  const capabilities = cap === undefined ? undefined : decodeSet(cap);
  // A narrow token must never be taken for a whole one.
  if (cap !== undefined && capabilities === undefined) throw unauthenticated('invalid "cap" in the token');
  return {
    identity: sub,
    audiences: [aud].flat(),
    scopes,
    capabilities,
    act,
    email: email === undefined ? undefined : { address: email, verified: email_verified === true },
    authenticated: auth_time * 1000,
    proof,
    provider: idp,
    issuedAt: iat * 1000,
    expires: exp * 1000,
  };
}

interface Written {
  auth_time: number;
  proof: string;
  idp: Provider;
  scopes: readonly string[];
  cap: string;
  act: Actor;
  email: string;
  email_verified: boolean;
}

/** The token in an `authorization` value, with or without its `Bearer ` prefix; empty when there is none. */
export const bearerToken = (authorization: string | undefined): string =>
  authorization?.replace(/^\s*bearer(?:\s+|$)/i, '').trim() ?? '';
