import type { JWTPayload } from 'jose';
import { decodeProtectedHeader } from 'jose/decode/protected_header';
import * as errors from 'jose/errors';
import { compactVerify } from 'jose/jws/compact/verify';
import { decodeJwt } from 'jose/jwt/decode';
import { ALGORITHMS, type PublicKey, type SignatureHeader } from '../../base/jwks.ts';

export type Claims = Readonly<JWTPayload>;

/** A JWT taken apart. What it claims is not to be believed before its signature is checked. */
export interface Token {
  readonly header: SignatureHeader;
  readonly claims: Claims;
}

/** No token is nearly as long; what is longer is not worth decoding. */
const MAX_LENGTH = 16 * 1024;
const LEEWAY_S = 60;

/** Takes a token apart, or says why that cannot be done. */
export function readToken(text: string): Token | string {
  if (text.length > MAX_LENGTH) return `the token is longer than ${MAX_LENGTH} characters`;
  try {
    const { alg = '', kid, crit } = decodeProtectedHeader(text);
    const claims = Object.freeze(decodeJwt(text));
    if (!ALGORITHMS.includes(alg)) return `the token must be signed with one of ${ALGORITHMS.join(', ')}`;
    // Extensions that must be understood (RFC 7515, section 4.1.11); none is.
    if (crit !== undefined) return 'the token has critical extensions';
    const odd = oddClaim(claims);
    if (odd) return `"${odd}" in the token is not text`;
    return { header: { alg, kid: typeof kid === 'string' ? kid : undefined }, claims };
  } catch {
    return 'the token is not a JWT';
  }
}

/** The claims that everything hangs on, if one is not of the type that RFC 7519, section 4.1 gives it. */
function oddClaim({ iss, sub, aud }: Readonly<Record<string, unknown>>): string | undefined {
  if (iss !== undefined && typeof iss !== 'string') return 'iss';
  if (sub !== undefined && typeof sub !== 'string') return 'sub';
  return [aud ?? []].flat().every((audience) => typeof audience === 'string') ? undefined : 'aud';
}

/** What keeps a token from being good at this time, or nothing. */
export function timeProblem({ exp, nbf, iat }: Claims, nowMs: number): string | undefined {
  const now = nowMs / 1000;
  if (!isTime(exp)) return 'the token does not say when it expires';
  if (exp + LEEWAY_S <= now) return 'the token has expired; get a new one';
  if (nbf !== undefined && !(isTime(nbf) && nbf - LEEWAY_S <= now)) return 'the token is not valid yet';
  if (iat !== undefined && !(isTime(iat) && iat - LEEWAY_S <= now)) return 'the token was issued in the future';
  return undefined;
}

/** The claims are whatever the token says, so the types are only hoped for. */
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
