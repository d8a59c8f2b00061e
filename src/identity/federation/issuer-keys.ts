import type { Clock } from '../../base/clock.ts';
import { canonicalIssuer, issuerProblem } from '../../base/issuer-url.ts';
import { type KeySet, matchingKeys, readKeySet, type SignatureHeader, usableKeys } from '../../base/jwks.ts';
import type { Log } from '../../base/log.ts';
import { createLru } from '../../base/lru.ts';
import type { FetchedJson } from '../outgoing/fetch-json.ts';
import { OutgoingError } from '../outgoing/permitted-url.ts';

/** The public keys of other issuers. */
export interface IssuerKeys {
  /**
   * Returns the keys of an issuer, and fetches them when they are not cached. Must only be called for an issuer that an
   * identity or identity provider names, because it sends requests to that issuer. Throws an OutgoingError when it
   * cannot fetch the keys.
   */
  keysFor(issuer: string, header: SignatureHeader): Promise<KeySet>;
}

export interface IssuerKeysOptions {
  readonly fetchJson: (url: string) => Promise<FetchedJson>;
  readonly clock: Clock;
  readonly log: Log;
}

interface CachedKeys {
  readonly keys: KeySet;
  readonly fetchedAt: number;
  readonly freshUntil: number;
  /** Until then stale keys are used when the issuer cannot be reached. */
  readonly staleUntil: number;
  /** From then on an unknown key id causes a fetch. */
  nextFetchForUnknownKey: number;
}

interface FetchFailure {
  readonly error: OutgoingError;
  readonly retryAt: number;
}

const SECOND = 1000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;

/** Cache-Control can set a shorter time than an hour, but no longer one: a withdrawn key must not stay valid longer. */
const FRESH = { min: 5 * MINUTE, max: HOUR };
const STALE = 6 * HOUR;
const RETRY_AFTER_FAILURE = 10 * SECOND;
const UNKNOWN_KEY_INTERVAL = MINUTE;

const MAX_ISSUERS = 1000;
const MAX_KEYS = 100;
/** With an issuer pattern, the sender of a token chooses the issuer. The limit protects the sockets of this server. */
const MAX_CONCURRENT_FETCHES = 100;

/** Fetches the keys of issuers by OpenID Connect Discovery, and caches them. */
export function createIssuerKeys({ fetchJson, clock, log }: IssuerKeysOptions): IssuerKeys {
  const cache = createLru<string, CachedKeys>(MAX_ISSUERS);
  // A cache of its own, so that issuers that do not exist do not evict existing ones.
  const failures = createLru<string, FetchFailure>(MAX_ISSUERS);
  const fetches = new Map<string, Promise<CachedKeys>>();

  async function cachedOrFetched(issuer: string): Promise<CachedKeys> {
    const cached = cache.get(issuer);
    const now = clock();
    if (cached && now < cached.freshUntil) return cached;
    const hasFailed = failures.get(issuer) !== undefined;
    const fetched = fetchAndCache(issuer);
    if (!cached || now >= cached.staleUntil) return fetched;
    const fetchedOrStale = fetched.catch(() => cached);
    // After a failure, requests do not wait for the next attempt.
    return hasFailed ? cached : fetchedOrStale;
  }

  /** Runs one fetch at a time for each issuer, and none for a while after a failure. */
  function fetchAndCache(issuer: string): Promise<CachedKeys> {
    const running = fetches.get(issuer);
    if (running) return running;
    const failure = failures.get(issuer);
    if (failure && clock() < failure.retryAt) return Promise.reject(failure.error);
    if (fetches.size >= MAX_CONCURRENT_FETCHES) {
      return Promise.reject(new OutgoingError('this server is fetching the keys of too many issuers; try again later'));
    }
    const fetch = fetchKeys(issuer)
      .then(
        (fetched) => put(issuer, fetched),
        (error: unknown) => fail(issuer, error),
      )
      .finally(() => fetches.delete(issuer));
    fetches.set(issuer, fetch);
    return fetch;
  }

  function put(issuer: string, { keys, maxAgeMs = FRESH.max }: FetchedKeys): CachedKeys {
    const now = clock();
    const freshUntil = now + Math.min(Math.max(maxAgeMs, FRESH.min), FRESH.max);
    const nextFetchForUnknownKey = cache.get(issuer)?.nextFetchForUnknownKey ?? 0;
    const cached = { keys, fetchedAt: now, freshUntil, staleUntil: now + STALE, nextFetchForUnknownKey };
    cache.set(issuer, cached);
    failures.delete(issuer);
    return cached;
  }

  function fail(issuer: string, error: unknown): never {
    if (!(error instanceof OutgoingError)) throw error;
    log.warn({ issuer, reason: error.message, cause: error.cause }, 'the keys of an issuer cannot be fetched');
    failures.set(issuer, { error, retryAt: clock() + RETRY_AFTER_FAILURE });
    throw error;
  }

  async function fetchKeys(issuer: string): Promise<FetchedKeys> {
    const problem = issuerProblem(issuer);
    if (problem) throw new OutgoingError(`its name ${problem}`);
    const { json: discovery } = await fetchJson(`${issuer.replace(/\/$/, '')}/.well-known/openid-configuration`);
    // Otherwise a user who can publish a file on a host could impersonate another issuer (Discovery 1.0, section 4.3).
    if (discovery.issuer !== issuer) throw new OutgoingError('its discovery document names another issuer');
    if (typeof discovery.jwks_uri !== 'string') throw new OutgoingError('its discovery document has no "jwks_uri"');
    const { json: jwks, maxAgeMs } = await fetchJson(discovery.jwks_uri);
    // Checked before the keys are parsed, because that takes time.
    if (Array.isArray(jwks.keys) && jwks.keys.length > MAX_KEYS) {
      throw new OutgoingError(`it has more than ${MAX_KEYS} keys`);
    }
    // Keys of unsupported types are ignored (RFC 7517, section 5).
    const keys = usableKeys(readKeySet(jwks) ?? []);
    if (keys.length === 0) throw new OutgoingError('it has no usable keys');
    return { keys, maxAgeMs };
  }

  return {
    async keysFor(name, header) {
      const issuer = canonicalIssuer(name);
      const now = clock();
      const cached = await cachedOrFetched(issuer);
      if (matchingKeys(cached.keys, header).length > 0 || cached.fetchedAt >= now) return cached.keys;
      // The issuer may have added a key since. Concurrent requests wait for the same fetch.
      if (now < cached.nextFetchForUnknownKey && !fetches.has(issuer)) return cached.keys;
      cached.nextFetchForUnknownKey = now + UNKNOWN_KEY_INTERVAL;
      return (await fetchAndCache(issuer).catch(() => cached)).keys;
    },
  };
}

interface FetchedKeys {
  readonly keys: KeySet;
  readonly maxAgeMs?: number | undefined;
}
