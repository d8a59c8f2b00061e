import { hash } from 'node:crypto';
import { timestampMs } from '@bufbuild/protobuf/wkt';
import { createCaller } from '../../access/create-caller.ts';
import type { GrantCache } from '../../access/grant-cache.ts';
import { narrowGrants } from '../../access/token-scope.ts';
import type { Clock } from '../../base/clock.ts';
import { unauthenticated } from '../../base/errors.ts';
import { createLru } from '../../base/lru.ts';
import type { MaybePromise } from '../../base/maybe-promise.ts';
import type { Caller } from '../../resource/caller.ts';
import type { Reader } from '../../store/store.ts';
import type { AuthenticateFederated } from '../federation/federated-login.ts';
import { providerGrants } from '../federation/provider-grants.ts';
import { type AccessTokens, bearerToken, type VerifiedAccessToken } from '../tokens/access-tokens.ts';
import { requireServerAudience } from '../tokens/audience.ts';
import { requireValidLogin } from './login-validity.ts';

export interface AuthenticatorOptions {
  readonly db: Reader;
  readonly clock: Clock;
  readonly accessTokens: Pick<AccessTokens, 'verify'>;
  readonly authenticateFederated: AuthenticateFederated;
  readonly grantCache: GrantCache;
  /** The URL of this server, which must be an audience of access tokens. */
  readonly publicUrl: string;
  /** Called for every authenticated request. */
  readonly recordLastSeen: (identity: string) => void;
}

/**
 * Returns the function that determines the caller from an `authorization` value. It accepts access tokens and federated
 * tokens that match an identity.
 */
export function createAuthenticator(
  options: AuthenticatorOptions,
): (authorization: string | undefined) => MaybePromise<Caller> {
  const { db, clock, accessTokens, authenticateFederated, grantCache, publicUrl, recordLastSeen } = options;

  // Keyed by digest, so that the cache contains no usable credentials.
  const callers = createLru<string, CachedCaller>(MAX_CACHED);

  async function callerOf(accessToken: VerifiedAccessToken): Promise<ExpiringCaller> {
    requireServerAudience(publicUrl, accessToken.audiences);
    const { relationship } = await requireValidLogin(db, accessToken, clock());
    const { identity, act, provider } = accessToken;
    const grants = [...(await grantCache.grants(identity)), ...(await providerGrants(db, provider))];
    const caller = createCaller(
      identity,
      { subject: identity, ...(act && { act: { ...act } }) },
      narrowGrants(grants, accessToken),
    );
    const expiry = relationship.case === 'staticKeys' ? relationship.value.expirationTime : undefined;
    return { caller, until: Math.min(accessToken.expires, expiry ? timestampMs(expiry) : Infinity) };
  }

  async function callerOfFederated(token: string): Promise<ExpiringCaller> {
    const login = await authenticateFederated(token, {});
    const { identity, issuer: iss, subject: sub, audiences, expires, provider } = login;
    const grants = [...(await grantCache.grants(identity)), ...(await providerGrants(db, provider))];
    const caller = createCaller(identity, { subject: identity, act: { iss, sub, aud: audiences.join(',') } }, grants);
    return { caller, until: Math.min(expires, clock() + FEDERATED_CACHE_MS) };
  }

  /** Returns the cached caller of a token, unless the access version has changed or the entry has expired. */
  function findCached(digest: string, accessVersion: string | undefined): Caller | undefined {
    const cached = callers.get(digest);
    if (!cached || cached.accessVersion !== accessVersion) return undefined;
    return clock() < cached.until ? cached.caller : undefined;
  }

  async function verify(token: string, digest: string, accessVersion: string | undefined): Promise<Caller> {
    const accessToken = await accessTokens.verify(token);
    const { caller, until } = await (accessToken ? callerOf(accessToken) : callerOfFederated(token));
    callers.set(digest, { caller, until, accessVersion });
    return caller;
  }

  function seen(caller: Caller): Caller {
    recordLastSeen(caller.uid);
    return caller;
  }

  function authenticate(token: string, digest: string, accessVersion: string | undefined): MaybePromise<Caller> {
    const caller = findCached(digest, accessVersion);
    return caller ? seen(caller) : verify(token, digest, accessVersion).then(seen);
  }

  // Most callers are cached. They are returned without a promise.
  return (authorization) => {
    const token = bearerToken(authorization);
    if (token === '') throw unauthenticated('send a token as Authorization: Bearer <token>');
    const digest = hash('sha256', token, 'base64');
    // Read before everything else about access, so that the cached caller is never older than its access version.
    const accessVersion = grantCache.accessVersion();
    return accessVersion instanceof Promise
      ? accessVersion.then((newest) => authenticate(token, digest, newest))
      : authenticate(token, digest, accessVersion);
  };
}

const MAX_CACHED = 10_000;
/**
 * Registry clients send the same federated token with every request of a pull. Changed keys of its
 * issuer, and an identity that expires, take effect after this time at the latest. A revocation changes the access version.
 */
const FEDERATED_CACHE_MS = 5_000;

interface ExpiringCaller {
  readonly caller: Caller;
  /** When the token, or the keys of its identity, must be checked again. */
  readonly until: number;
}

interface CachedCaller extends ExpiringCaller {
  /** The entry is valid for this access version, which changes with everything that `requireValidLogin` checks. */
  readonly accessVersion: string | undefined;
}
