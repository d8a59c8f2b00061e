import type { Clock } from '../../base/clock.ts';
import { canonicalIssuer, issuerProblem } from '../../base/issuer-url.ts';
import { type KeySet, keysFitting, readKeySet, type SignatureHeader, usableKeys } from '../../base/jwks.ts';
import type { Log } from '../../base/log.ts';
import { createLru } from '../../base/lru.ts';
import type { Fetched } from '../outgoing/fetch-json.ts';
import { OutgoingError } from '../outgoing/permitted-url.ts';

export interface Issuers {
  /**
   * The keys of an issuer, newly fetched if need be. Only for an issuer that an identity or identity provider names:
   * this is what contacts it. Throws an OutgoingError when the keys cannot be had.
   */
  keysFor(issuer: string, header: SignatureHeader): Promise<KeySet>;
}

export interface IssuersOptions {
  readonly fetchJson: (url: string) => Promise<Fetched>;
  readonly clock: Clock;
  readonly log: Log;
}

interface Held {
  readonly keys: KeySet;
  readonly fetchedAt: number;
  readonly freshUntil: number;
  /** Until when old keys are better than none. */
  readonly usableUntil: number;
  /** When an unknown key id may next be a reason to fetch. */
  nextSearch: number;
}

interface Failure {
  readonly error: OutgoingError;
  readonly retryAt: number;
}

const SECOND = 1000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;

/** An issuer may ask for less than an hour, but not for more: a key that it withdraws is to be gone within the hour. */
const FRESH = { min: 5 * MINUTE, max: HOUR };
const USABLE = 6 * HOUR;
const RETRY = 10 * SECOND;
const SEARCH = MINUTE;

const MAX_ISSUERS = 1000;
const MAX_KEYS = 100;
/** Patterns leave the choice of the issuer to whoever makes the token: a flood of them must not take all our sockets. */
const MAX_FETCHES = 100;

/** Finds the keys of issuers by OpenID Connect Discovery, and remembers them. */
export function createIssuers({ fetchJson, clock, log }: IssuersOptions): Issuers {
  const issuers = createLru<string, Held>(MAX_ISSUERS);
  // Apart from the others, so that issuers that do not exist never push out one that does.
  const failures = createLru<string, Failure>(MAX_ISSUERS);
  const fetches = new Map<string, Promise<Held>>();

  async function keysOf(issuer: string): Promise<Held> {
    const held = issuers.get(issuer);
    const now = clock();
    if (held && now < held.freshUntil) return held;
    const hasFailed = failures.get(issuer) !== undefined;
    const fetched = refetch(issuer);
    if (!held || now >= held.usableUntil) return fetched;
    const orOld = fetched.catch(() => held);
    // Once an issuer has failed, nobody waits for its next failure.
    return hasFailed ? held : orOld;
  }

  /** One at a time for each issuer, and none for a while after a failure. */
  function refetch(issuer: string): Promise<Held> {
    const running = fetches.get(issuer);
    if (running) return running;
    const failure = failures.get(issuer);
    if (failure && clock() < failure.retryAt) return Promise.reject(failure.error);
    if (fetches.size >= MAX_FETCHES) {
      return Promise.reject(new OutgoingError('too many issuers are being asked for their keys; try again later'));
    }
    const fetch = fetchKeys(issuer)
      .then(
        (fetched) => remember(issuer, fetched),
        (error: unknown) => fail(issuer, error),
      )
      .finally(() => fetches.delete(issuer));
    fetches.set(issuer, fetch);
    return fetch;
  }

  function remember(issuer: string, { keys, maxAgeMs = FRESH.max }: FetchedKeys): Held {
    const now = clock();
    const freshUntil = now + Math.min(Math.max(maxAgeMs, FRESH.min), FRESH.max);
    const nextSearch = issuers.get(issuer)?.nextSearch ?? 0;
    const held = { keys, fetchedAt: now, freshUntil, usableUntil: now + USABLE, nextSearch };
    issuers.set(issuer, held);
    failures.delete(issuer);
    return held;
  }

  function fail(issuer: string, error: unknown): never {
    if (!(error instanceof OutgoingError)) throw error;
    log.warn({ issuer, reason: error.message, cause: error.cause }, 'the keys of an issuer cannot be fetched');
    failures.set(issuer, { error, retryAt: clock() + RETRY });
    throw error;
  }

  async function fetchKeys(issuer: string): Promise<FetchedKeys> {
    const problem = issuerProblem(issuer);
    if (problem) throw new OutgoingError(`its name ${problem}`);
    const { json: discovery } = await fetchJson(`${issuer.replace(/\/$/, '')}/.well-known/openid-configuration`);
    // Otherwise whoever can put a file on a host could speak for another issuer (Discovery 1.0, section 4.3).
    if (discovery.issuer !== issuer) throw new OutgoingError('its discovery document names another issuer');
    if (typeof discovery.jwks_uri !== 'string') throw new OutgoingError('its discovery document names no keys');
    const { json: jwks, maxAgeMs } = await fetchJson(discovery.jwks_uri);
    // Reading a key costs time, so the number is looked at first.
    if (Array.isArray(jwks.keys) && jwks.keys.length > MAX_KEYS)
      throw new OutgoingError(`it has more than ${MAX_KEYS} keys`);
    // Keys of a kind that is unknown here are left out, as RFC 7517, section 5 asks.
    const keys = usableKeys(readKeySet(jwks) ?? []);
    if (keys.length === 0) throw new OutgoingError('it has no usable keys');
    return { keys, maxAgeMs };
  }

  return {
    async keysFor(name, header) {
      const issuer = canonicalIssuer(name);
      const now = clock();
      const held = await keysOf(issuer);
      if (keysFitting(held.keys, header).length > 0 || held.fetchedAt >= now) return held.keys;
      // Perhaps the issuer has a new key since. Whoever comes while that is being found out waits for it as well.
      if (now < held.nextSearch && !fetches.has(issuer)) return held.keys;
      held.nextSearch = now + SEARCH;
      return (await refetch(issuer).catch(() => held)).keys;
    },
  };
}

interface FetchedKeys {
  readonly keys: KeySet;
  readonly maxAgeMs?: number | undefined;
}
