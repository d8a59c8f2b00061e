import { hash } from 'node:crypto';
import { timestampMs } from '@bufbuild/protobuf/wkt';
import { anonymousCaller, createCaller, type Grant } from '../../access/create-caller.ts';
import { type GrantCache, readAccessVersion } from '../../access/grant-cache.ts';
import { grantsOf } from '../../access/grants.ts';
import { findPersonTerms, type PersonTerms } from '../../access/person-terms.ts';
import { narrowGrants, type TokenScope } from '../../access/token-scope.ts';
import type { Clock } from '../../base/clock.ts';
import { unauthenticated } from '../../base/errors.ts';
import { createLru } from '../../base/lru.ts';
import { chain, type MaybePromise } from '../../base/maybe-promise.ts';
import type { RequiredTerms } from '../../base/terms.ts';
import { isUid } from '../../base/uid.ts';
import { Capability } from '../../contract/gen/capabilities/capabilities_pb.js';
import type { Caller, CallerTerms } from '../../resource/caller.ts';
import type { Reader } from '../../store/store.ts';
import { chooseIdentity } from '../federation/choose-identity.ts';
import { ambiguousIdentity, type FederatedMatches, type MatchFederated } from '../federation/federated-login.ts';
import type { MatchedLogin } from '../federation/match-identities.ts';
import { providerGrants } from '../federation/provider-grants.ts';
import { type AccessTokens, bearerToken, type VerifiedAccessToken } from '../tokens/access-tokens.ts';
import { isRegistryToken, requireServerAudience } from '../tokens/audience.ts';
import { LOGIN_LIFETIME_MS } from '../tokens/lifetimes.ts';
import { type LoginRecord, requireValidLogin } from './login-validity.ts';

export interface AuthenticatorOptions {
  readonly db: Reader;
  readonly clock: Clock;
  readonly accessTokens: Pick<AccessTokens, 'verify'>;
  readonly matchFederated: MatchFederated;
  readonly grantCache: GrantCache;
  /** The URL of this server, which must be an audience of access tokens. */
  readonly publicUrl: string;
  /** Called for every authenticated request. */
  readonly recordLastSeen: (identity: string) => void;
  /** The documents that people must accept, and where they can read them. */
  readonly requiredTerms?: RequiredTerms | undefined;
  readonly termsUrls?: ReadonlyMap<string, string> | undefined;
  /** Throws if an address may send no unknown token now (src/limits/request-rates.ts). Absent for no limit. */
  readonly requireAttempt?: ((address: string) => void) | undefined;
}

/** Determines the caller from an `authorization` value, sent from an address. Throws UNAUTHENTICATED. */
type Authenticate = (authorization: string | undefined, address: string) => MaybePromise<Caller>;

export interface Authenticator {
  /** For REST and gRPC: accepts access tokens, and federated tokens that match an identity. */
  readonly authenticate: Authenticate;
  /** For the OCI registry: also accepts registry tokens, which are valid nowhere else. */
  readonly authenticateForRegistry: Authenticate;
}

export function createAuthenticator(options: AuthenticatorOptions): Authenticator {
  const { db, clock, accessTokens, matchFederated, grantCache, publicUrl, recordLastSeen, requireAttempt } = options;
  const { requiredTerms = NO_TERMS, termsUrls = NO_URLS } = options;

  // Keyed by digest, so that the cache contains no usable credentials.
  const callers = createLru<string, CachedCaller>(MAX_CACHED);

  function loginOf(accessToken: VerifiedAccessToken): Login {
    requireServerAudience(publicUrl, accessToken.audiences);
    const { identity, act, expires, audiences } = accessToken;
    const actor = { subject: identity, ...(act && { act: { ...act } }) };
    return { record: accessToken, scope: accessToken, actor, expires, forRegistry: isRegistryToken(audiences) };
  }

  /** The login as one of the identities that a federated token matches. */
  function loginAs({ uid: identity, credentialFingerprint }: MatchedLogin, federated: FederatedMatches): Login {
    const { issuer: iss, subject: sub, audiences, authenticatedAt, issuedAt } = federated;
    return {
      record: { identity, authenticatedAt, credentialFingerprint },
      scope: {},
      actor: { subject: identity, act: { iss, sub, aud: audiences.join(',') } },
      expires: cachedUntil(federated),
      federatedIssuedAt: issuedAt,
      forRegistry: false,
    };
  }

  const cachedUntil = ({ expires, authenticatedAt }: FederatedMatches): number =>
    Math.min(expires, authenticatedAt + FEDERATED_CACHE_MS);

  /** Reads what a login may do now. */
  async function loadAccess(login: Login, reader: Reader, grantsIn: GrantCache['grants']): Promise<Access> {
    const { record, scope, expires, federatedIssuedAt } = login;
    const { identity, effective } = await requireValidLogin(reader, record, clock(), federatedIssuedAt);
    const { relationship } = identity.message;
    const grants = effective([
      ...(await grantsIn(record.identity)),
      ...(await providerGrants(reader, record.provider)),
    ]);
    const sessionExpires = record.session === undefined ? Infinity : record.authenticatedAt + LOGIN_LIFETIME_MS;
    const expiry = relationship.case === 'staticKeys' ? relationship.value.expirationTime : undefined;
    const narrowed = narrowGrants(grants, scope);
    const terms =
      requiredTerms.size > 0
        ? await findPersonTerms(reader, requiredTerms, identity, narrowed, isRestricted(scope))
        : undefined;
    return {
      grants: terms?.accepted ?? narrowed,
      terms,
      until: Math.min(expires, sessionExpires, expiry ? timestampMs(expiry) : Infinity),
    };
  }

  function callerOf(login: Login, { grants, terms }: Access, accessVersion: string | undefined): Caller {
    const { identity } = login.record;
    const options = {
      isRestricted: isRestricted(login.scope),
      login: { provider: login.record.provider, scopes: login.scope.scopes, capabilities: login.scope.capabilities },
    };
    const caller = createCaller(identity, login.actor, grants, {
      ...options,
      terms: terms && callerTerms(terms),
      current: (reader) =>
        chain(readAccessVersion(reader), (newest) => (newest === accessVersion ? caller : reload(reader, newest))),
    });
    /** The caller with all its grants becomes the one that a newer access version has in the same way. */
    function callerTerms({ required, missing, all, beforeAcceptance }: PersonTerms): CallerTerms {
      const whole = createCaller(identity, login.actor, all);
      const terms = {
        ...{ required, missing, urls: termsUrls, beforeAcceptance: whole },
        canAcceptAny: (group: string) => isUid(group) && whole.can(ACCEPT_TERMS, group),
      };
      const before: Caller = createCaller(identity, login.actor, beforeAcceptance, {
        ...options,
        terms,
        current: (reader) =>
          chain(caller.current(reader), (next) => (next === caller ? before : (next.terms?.beforeAcceptance ?? next))),
      });
      return Object.assign(terms, { beforeAcceptance: before });
    }
    /** Does not fetch anything from the issuer, because the transaction of a write is open. */
    async function reload(reader: Reader, newest: string | undefined): Promise<Caller> {
      const access = await loadAccess(login, reader, (uid) => grantsOf(reader, uid));
      return areEqual(access.grants, grants) ? caller : callerOf(login, access, newest);
    }
    return caller;
  }

  async function logIn(login: Login, accessVersion: string | undefined): Promise<CachedCaller> {
    const access = await loadAccess(login, db, grantCache.grants);
    const caller = callerOf(login, access, accessVersion);
    return { caller, until: access.until, accessVersion, forRegistry: login.forRegistry };
  }

  async function logInFederated(token: string, accessVersion: string | undefined): Promise<CachedCaller> {
    const federated = await matchFederated(token);
    const [only, another] = federated.matches;
    if (only && !another) return logIn(loginAs(only, federated), accessVersion);
    const caller = callerByRequest(federated, accessVersion);
    return { caller, until: cachedUntil(federated), accessVersion, forRegistry: false };
  }

  /** The caller of a token that several identities match. The request decides which of them calls. */
  function callerByRequest(federated: FederatedMatches, accessVersion: string | undefined): Caller {
    const logins = new Map<string, Promise<CachedCaller>>();
    const caller: Caller = {
      ...anonymousCaller,
      current: () => caller,
      async forRequest(addressed) {
        const chosen = chooseIdentity(federated.matches, addressed);
        if (!chosen) throw ambiguousIdentity();
        const login = logins.get(chosen.uid) ?? logIn(loginAs(chosen, federated), accessVersion);
        logins.set(chosen.uid, login);
        recordLastSeen(chosen.uid);
        return (await login).caller;
      },
    };
    return caller;
  }

  async function verify(token: string, digest: string, accessVersion: string | undefined): Promise<CachedCaller> {
    const accessToken = await accessTokens.verify(token);
    const verified = await (accessToken
      ? logIn(loginOf(accessToken), accessVersion)
      : logInFederated(token, accessVersion));
    callers.set(digest, verified);
    return verified;
  }

  /** Returns the cached caller of a token, unless the access version has changed or the entry has expired. */
  function findCached(digest: string, accessVersion: string | undefined): CachedCaller | undefined {
    const cached = callers.get(digest);
    return cached && cached.accessVersion === accessVersion && clock() < cached.until ? cached : undefined;
  }

  function authenticateUncached(
    token: string,
    digest: string,
    accessVersion: string | undefined,
    address: string,
  ): Promise<CachedCaller> {
    // A token that was valid before is not a guess: an attacker with the same address does not lock out its client.
    if (callers.get(digest) === undefined) requireAttempt?.(address);
    return verify(token, digest, accessVersion);
  }

  const createAuthenticate = (acceptsRegistryTokens: boolean): Authenticate => {
    function admit({ caller, forRegistry }: CachedCaller): Caller {
      if (forRegistry && !acceptsRegistryTokens) {
        throw unauthenticated('a registry token is valid at /v2/ only; send the token that you got it with');
      }
      if (!caller.forRequest) recordLastSeen(caller.uid);
      return caller;
    }

    // Most callers are cached. They are returned without a promise.
    return (authorization, address) => {
      const token = bearerToken(authorization);
      if (token === '') {
        requireAttempt?.(address);
        throw unauthenticated('send a token as Authorization: Bearer <token>');
      }
      const digest = hash('sha256', token, 'base64');
      // Read before everything else about access, so that the cached caller is never older than its access version.
      return chain(grantCache.accessVersion(), (accessVersion) =>
        chain(findCached(digest, accessVersion) ?? authenticateUncached(token, digest, accessVersion, address), admit),
      );
    };
  };

  return { authenticate: createAuthenticate(false), authenticateForRegistry: createAuthenticate(true) };
}

const NO_TERMS: RequiredTerms = new Map();
const NO_URLS: ReadonlyMap<string, string> = new Map();
const ACCEPT_TERMS = [Capability.CAP_TERMS_ACCEPT];

const isRestricted = ({ scopes, capabilities }: TokenScope): boolean =>
  scopes !== undefined || capabilities !== undefined;

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
  /** When a federated token was issued, in milliseconds. */
  readonly federatedIssuedAt?: number | undefined;
  readonly forRegistry: boolean;
}

/** What a login may do at one access version. */
interface Access {
  readonly grants: readonly Grant[];
  readonly terms: PersonTerms | undefined;
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
