import type { JWTPayload } from 'jose';
import { decodeProtectedHeader } from 'jose/decode/protected_header';
import * as errors from 'jose/errors';
import { compactVerify } from 'jose/jws/compact/verify';
import { decodeJwt } from 'jose/jwt/decode';
import { ALGORITHMS, type PublicKey, type SignatureHeader } from '../../base/jwks.ts';

export type JwtClaims = Readonly<JWTPayload>;

/** A decoded JWT. Its claims must not be trusted before its signature is verified. */
export interface ParsedJwt {
  readonly header: SignatureHeader;
  readonly claims: JwtClaims;
}

/** Real tokens are far shorter. Longer input is not decoded. */
const MAX_LENGTH = 16 * 1024;
const LEEWAY_S = 60;

/** Decodes a JWT without verifying its signature. Returns an error message when the text is not an acceptable JWT. */
export function parseJwt(text: string): ParsedJwt | string {
  if (text.length > MAX_LENGTH) return `the token is longer than ${MAX_LENGTH} characters; send a shorter one`;
  try {
    const { alg = '', kid, crit } = decodeProtectedHeader(text);
    const claims = Object.freeze(decodeJwt(text));
    if (!ALGORITHMS.includes(alg)) return `the token must be signed with one of ${ALGORITHMS.join(', ')}`;
    // Extensions that a recipient must understand (RFC 7515, section 4.1.11). This server supports none.
    if (crit !== undefined) return 'the token has critical header extensions ("crit"), which are not supported';
    const malformed = malformedClaim(claims);
    if (malformed) return `"${malformed}" in the token has the wrong type; it must be a string`;
    const unprintable = unprintableClaim(claims);
    if (unprintable) return `"${unprintable}" in the token contains control characters; get a token without them`;
    return { header: { alg, kid: typeof kid === 'string' ? kid : undefined }, claims };
  } catch {
    return 'the token is not a JWT; send a complete JWT';
  }
}

/** Returns the name of a claim of the wrong type (RFC 7519, section 4.1). `aud` may also be a list of strings. */
function malformedClaim({ iss, sub, aud }: Readonly<Record<string, unknown>>): string | undefined {
  if (iss !== undefined && typeof iss !== 'string') return 'iss';
  if (sub !== undefined && typeof sub !== 'string') return 'sub';
  return [aud ?? []].flat().every((audience) => typeof audience === 'string') ? undefined : 'aud';
}

/** Returns the name of a claim with control characters. The database cannot store some of them, and logs show them. */
function unprintableClaim({ iss = '', sub = '', aud = [] }: JwtClaims): string | undefined {
  const texts = { iss, sub, aud: [aud].flat().join('') };
  return Object.entries(texts).find(([, text]) => /\p{Cc}/u.test(text))?.[0];
}

/**
 * Returns why a token is outside of its validity period at `nowMs`, or is valid for longer than `maxLifetimeMs`. Returns
 * undefined when it is valid.
 */
export function validityPeriodProblem(
  { exp, nbf, iat }: JwtClaims,
  nowMs: number,
  maxLifetimeMs: number,
): string | undefined {
  const now = nowMs / 1000;
  if (!isTime(exp)) return 'the token has no expiry time ("exp"); get one that has';
  if (exp + LEEWAY_S <= now) return 'the token has expired; get a new one';
  if (nbf !== undefined && !(isTime(nbf) && nbf - LEEWAY_S <= now)) {
    return 'the token is not valid yet ("nbf"); check the clock of its issuer';
  }
  if (iat !== undefined && !(isTime(iat) && iat - LEEWAY_S <= now)) {
    return 'the token was issued in the future ("iat"); check the clock of its issuer';
  }
  if ((exp - Math.min(iat ?? now, now)) * 1000 > maxLifetimeMs + LEEWAY_S * 1000) {
    return `the token is valid for longer than ${formatDuration(maxLifetimeMs)}; get one with an earlier "exp"`;
  }
  return undefined;
}

function formatDuration(ms: number): string {
  const hours = Math.round(ms / 3_600_000);
  return hours % 24 === 0 ? `${hours / 24} days` : `${hours} hours`;
}

/** The types of unverified claims are not guaranteed. */
const isTime = (value: number | undefined): value is number => Number.isFinite(value);

export async function isSignedWith(text: string, { key, algorithms }: PublicKey): Promise<boolean> {
  try {
    await compactVerify(text, key, { algorithms: [...algorithms] });
    return true;
  } catch (error) {
    if (error instanceof errors.JOSEError) return false;
    throw error;
  }
}
