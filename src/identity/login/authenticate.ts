import { hash } from 'node:crypto';
import { timestampMs } from '@bufbuild/protobuf/wkt';
import { createCaller, type Grant } from '../../access/create-caller.ts';
import { type GrantCache, readAccessVersion } from '../../access/grant-cache.ts';
import { grantsOf } from '../../access/grants.ts';
import { narrowGrants, type TokenScope } from '../../access/token-scope.ts';
import type { Clock } from '../../base/clock.ts';
import { unauthenticated } from '../../base/errors.ts';
import { createLru } from '../../base/lru.ts';
import { chain, type MaybePromise } from '../../base/maybe-promise.ts';
import { identities } from '../../domains/iam/identities/identities.ts';
import type { Caller } from '../../resource/caller.ts';
import { find } from '../../resource/read.ts';
import type { Reader } from '../../store/store.ts';
import type { AuthenticateFederated } from '../federation/federated-login.ts';
import { providerGrants } from '../federation/provider-grants.ts';
import { type AccessTokens, bearerToken } from '../tokens/access-tokens.ts';
import { isRegistryToken, requireServerAudience } from '../tokens/audience.ts';
import { credentialFingerprintOf, type LoginRecord, requireValidLogin } from './login-validity.ts';

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

/** Determines the caller from an `authorization` value. Throws UNAUTHENTICATED. */
type Authenticate = (authorization: string | undefined) => MaybePromise<Caller>;

export interface Authenticator {
  /** For REST and gRPC: accepts access tokens, and federated tokens that match an identity. */
  readonly authenticate: Authenticate;
  /** For the OCI registry: also accepts registry tokens, which are valid nowhere else. */
  readonly authenticateForRegistry: Authenticate;
}

export function createAuthenticator(options: AuthenticatorOptions): Authenticator {
  const { db, clock, accessTokens, authenticateFederated, grantCache, publicUrl, recordLastSeen } = options;

  // Keyed by digest, so that the cache contains no usable credentials.
  const callers = createLru<string, CachedCaller>(MAX_CACHED);

  async function verifyToken(token: string): Promise<Login> {
    const accessToken = await accessTokens.verify(token);
    if (accessToken === undefined) return verifyFederated(token);
    requireServerAudience(publicUrl, accessToken.audiences);
    const { identity, act, expires, audiences } = accessToken;
    const actor = { subject: identity, ...(act && { act: { ...act } }) };
    return { record: accessToken, scope: accessToken, actor, expires, forRegistry: isRegistryToken(audiences) };
  }

  async function verifyFederated(token: string): Promise<Login> {
    const { identity, provider, ...claims } = await authenticateFederated(token, {});
    const stored = await find(db, identities, identity);
    if (!stored) throw unauthenticated('the identity of this token was deleted; log in as another identity');
    const credentialFingerprint = credentialFingerprintOf(stored.message);
    return {
      record: { identity, authenticatedAt: clock(), credentialFingerprint, provider },
      scope: {},
      actor: {
        subject: identity,
        act: { iss: claims.issuer, sub: claims.subject, aud: claims.audiences.join(',') },
      },
      expires: Math.min(claims.expires, clock() + FEDERATED_CACHE_MS),
      forRegistry: false,
    };
  }

  /** Reads what a login may do now. */
  async function loadAccess(login: Login, reader: Reader, grantsIn: GrantCache['grants']): Promise<Access> {
    const { record, scope, expires } = login;
    const { relationship } = await requireValidLogin(reader, record, clock());
    const grants = [...(await grantsIn(record.identity)), ...(await providerGrants(reader, record.provider))];
    const expiry = relationship.case === 'staticKeys' ? relationship.value.expirationTime : undefined;
    return {
      grants: narrowGrants(grants, scope),
      until: Math.min(expires, expiry ? timestampMs(expiry) : Infinity),
    };
  }

  function callerOf(login: Login, { grants }: Access, accessVersion: string | undefined): Caller {
    const { identity } = login.record;
    const caller = createCaller(identity, login.actor, grants, {
      isRestricted: login.scope.scopes !== undefined || login.scope.capabilities !== undefined,
      login: { provider: login.record.provider, scopes: login.scope.scopes, capabilities: login.scope.capabilities },
      current: (reader) =>
        chain(readAccessVersion(reader), (newest) => (newest === accessVersion ? caller : reload(reader, newest))),
    });
    /** Does not fetch anything from the issuer, because the transaction of a write is open. */
    async function reload(reader: Reader, newest: string | undefined): Promise<Caller> {
      const access = await loadAccess(login, reader, (uid) => grantsOf(reader, uid));
      return areEqual(access.grants, grants) ? caller : callerOf(login, access, newest);
    }
    return caller;
  }

  async function verify(token: string, digest: string, accessVersion: string | undefined): Promise<CachedCaller> {
    const login = await verifyToken(token);
    const access = await loadAccess(login, db, grantCache.grants);
    const caller = callerOf(login, access, accessVersion);
    const verified = { caller, until: access.until, accessVersion, forRegistry: login.forRegistry };
    callers.set(digest, verified);
    return verified;
  }

  /** Returns the cached caller of a token, unless the access version has changed or the entry has expired. */
  function findCached(digest: string, accessVersion: string | undefined): CachedCaller | undefined {
    const cached = callers.get(digest);
    return cached && cached.accessVersion === accessVersion && clock() < cached.until ? cached : undefined;
  }

  const createAuthenticate = (acceptsRegistryTokens: boolean): Authenticate => {
    function admit({ caller, forRegistry }: CachedCaller): Caller {
      if (forRegistry && !acceptsRegistryTokens) {
        throw unauthenticated('a registry token is valid at /v2/ only; send the token that you got it with');
      }
      recordLastSeen(caller.uid);
      return caller;
    }

    // Most callers are cached. They are returned without a promise.
    return (authorization) => {
      const token = bearerToken(authorization);
      if (token === '') throw unauthenticated('send a token as Authorization: Bearer <token>');
      const digest = hash('sha256', token, 'base64');
      // Read before everything else about access, so that the cached caller is never older than its access version.
      return chain(grantCache.accessVersion(), (accessVersion) =>
        chain(findCached(digest, accessVersion) ?? verify(token, digest, accessVersion), admit),
      );
    };
  };

  return { authenticate: createAuthenticate(false), authenticateForRegistry: createAuthenticate(true) };
}

const MAX_CACHED = 10_000;
/**
 * Registry clients send the same federated token with every request of a pull. Changed keys of its
 * issuer, and an identity that expires, take effect after this time at the latest. A revocation changes the access version.
 */
const FEDERATED_CACHE_MS = 5_000;

/** What a verified token says. It does not change while the token is valid. */
interface Login {
  readonly record: LoginRecord;
  readonly scope: TokenScope;
  readonly actor: Caller['actor'];
  /** When the token must be verified again. */
  readonly expires: number;
  readonly forRegistry: boolean;
}

/** What a login may do at one access version. */
interface Access {
  readonly grants: readonly Grant[];
  /** When the token, or the keys of its identity, must be checked again. */
  readonly until: number;
}

interface CachedCaller {
  readonly caller: Caller;
  readonly until: number;
  /** The entry is valid for this access version, which changes with everything that `requireValidLogin` checks. */
  readonly accessVersion: string | undefined;
  readonly forRegistry: boolean;
}

/** Compares in order. Grants in another order count as changed, which costs a second check and nothing else. */
const areEqual = (a: readonly Grant[], b: readonly Grant[]): boolean =>
  a.length === b.length &&
  a.every(({ group, capabilities }, at) => group === b[at]?.group && capabilities === b[at]?.capabilities);
