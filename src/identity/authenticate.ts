import { timestampMs } from '@bufbuild/protobuf/wkt';
import { createLocalJWKSet, decodeJwt, errors, type JWTPayload, jwtVerify } from 'jose';
import { createCaller } from '../access/caller.ts';
import { grantsOf } from '../access/grants.ts';
import type { Clock } from '../base/clock.ts';
import { type ApiError, unauthenticated } from '../base/errors.ts';
import type { Identity, Identity_StaticKeys } from '../contract/gen/chainguard/platform/iam/v2/identities_pb.js';
import { identities, subjectKey } from '../domains/iam/identities.ts';
import type { Caller } from '../resource/context.ts';
import type { Stored } from '../resource/definition.ts';
import { find, findReferring } from '../resource/read.ts';
import type { Reader } from '../store/store.ts';

/** Asymmetric only: with a shared secret whoever can verify could also sign. */
const ALGORITHMS = [
  'EdDSA',
  'Ed25519',
  'ES256',
  'ES384',
  'ES512',
  'RS256',
  'RS384',
  'RS512',
  'PS256',
  'PS384',
  'PS512',
];
const LEEWAY_S = 60;
/** No token is nearly as long; what is longer is not worth decoding. */
const MAX_TOKEN_LENGTH = 16 * 1024;

/** Answers who sent an `authorization` value, with or without its `Bearer ` prefix. */
export function createAuthenticator(db: Reader, clock: Clock): (authorization: string | undefined) => Promise<Caller> {
  return async (authorization) => {
    const token = authorization?.replace(/^bearer\s+/i, '').trim();
    if (!token) throw unauthenticated('send a token as Authorization: Bearer <token>');
    const claims = decode(token);
    const { iss = '', sub = '' } = claims;
    let refusal: ApiError | undefined;
    for (const identity of await candidates(db, iss, sub)) {
      try {
        await verify(identity.message as Identity, token, clock());
      } catch (error) {
        refusal ??= explain(error);
        continue;
      }
      return createCaller(identity.uid, { subject: identity.uid }, await grantsOf(db, identity.uid));
    }
    throw refusal ?? unauthenticated('no identity matches the issuer and subject of this token');
  };
}

function decode(token: string): JWTPayload {
  if (token.length > MAX_TOKEN_LENGTH) throw unauthenticated('the token is too long');
  try {
    return decodeJwt(token);
  } catch {
    throw unauthenticated('the token is not a JWT');
  }
}

/** Oldest first, so that nobody takes over a login by creating a twin of its identity. */
async function candidates(db: Reader, issuer: string, subject: string): Promise<Stored[]> {
  const found: Stored[] = [];
  for (const uid of await findReferring(db, identities, 'subject', subjectKey(issuer, subject))) {
    const identity = await find(db, identities, uid);
    if (identity) found.push(identity);
  }
  return found.sort((a, b) => a.created - b.created || (a.uid < b.uid ? -1 : 1));
}

async function verify({ relationship }: Identity, token: string, now: number): Promise<void> {
  if (relationship.case !== 'staticKeys') throw unauthenticated('this kind of identity cannot log in');
  const keys: Identity_StaticKeys = relationship.value;
  if (keys.expirationTime && timestampMs(keys.expirationTime) <= now) throw unauthenticated('the identity has expired');
  await jwtVerify(token, createLocalJWKSet(JSON.parse(keys.issuerKeys)), {
    algorithms: ALGORITHMS,
    issuer: keys.issuer,
    subject: keys.subject,
    audience: keys.audiences,
    clockTolerance: LEEWAY_S,
    currentDate: new Date(now),
    requiredClaims: ['exp', 'aud'],
  });
}

function explain(error: unknown): ApiError {
  if (error instanceof errors.JWTExpired) return unauthenticated('the token has expired; get a new one');
  if (error instanceof errors.JWTClaimValidationFailed) return unauthenticated(`invalid "${error.claim}" in the token`);
  if (error instanceof errors.JOSEError) return unauthenticated('the signature of the token is not valid');
  return error as ApiError;
}
