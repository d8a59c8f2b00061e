import type { Clock } from '../base/clock.ts';
import { type ApiError, quotaExceeded } from '../base/errors.ts';
import type { CountRefusal } from './quotas.ts';
import { createRateLimiter } from './rate-limiter.ts';

/**
 * Limits how many requests an identity may send, and how many requests without a valid credential an address may send.
 * An address can be that of a gateway with many honest clients behind it, so a request with a valid credential never
 * counts against its address.
 */
export interface RequestRates {
  /** Counts a request of an identity; empty for an anonymous caller, which does not count. Throws RESOURCE_EXHAUSTED. */
  countIdentity(identity: string): void;
  /** Counts a request that needs no credential. Throws RESOURCE_EXHAUSTED. */
  countAnonymous(address: string): void;
  /** Throws RESOURCE_EXHAUSTED if the address may send no unknown credential now. Counts nothing. */
  requireAttempt(address: string): void;
  /** Counts a request that was UNAUTHENTICATED. One with a wrong credential costs more than one without any. */
  countFailure(address: string, hadCredential: boolean): void;
  /** Uses other rates. A rate that changes counts from zero. */
  change(rates: Rates): void;
}

export interface Rates {
  /** Requests per second; Infinity for no limit. */
  readonly perIdentity: number;
  /** Requests without a valid credential per second; Infinity for no limit. */
  readonly perAddress: number;
}

export interface RequestRatesOptions extends Rates {
  readonly clock: Clock;
  readonly countRefusal: CountRefusal;
}

/** How many seconds' worth of requests may come at once. */
const BURST_SECONDS = 10;
const CAPACITY = 10_000;
/** What a wrong credential costs, compared to a request without one. Verifying it takes a signature or a database read. */
const WRONG_CREDENTIAL_COST = 10;

export function createRequestRates({ clock, countRefusal, ...first }: RequestRatesOptions): RequestRates {
  let { perIdentity, perAddress } = first;
  const limiter = (perSecond: number) =>
    Number.isFinite(perSecond)
      ? createRateLimiter({ perSecond, burstSeconds: BURST_SECONDS, capacity: CAPACITY, clock })
      : undefined;
  let identities = limiter(perIdentity);
  let addresses = limiter(perAddress);

  function tooFast(identity: string, delay: number): ApiError {
    countRefusal('identity_rate');
    return quotaExceeded(
      `identity:${identity}`,
      `an identity may send ${perIdentity} requests per second; send fewer, and retry after the delay`,
      delay,
    );
  }

  function refuseAddress(key: string, delay: number): void {
    if (delay === 0) return;
    countRefusal('address_rate');
    throw quotaExceeded(
      `address:${key}`,
      'too many requests without a valid credential come from this address; send a valid token, or retry after the delay',
      delay,
    );
  }

  return {
    countIdentity(identity) {
      if (!identities || identity === '') return;
      const delay = identities.spend(identity);
      if (delay > 0) throw tooFast(identity, delay);
    },
    countAnonymous(address) {
      if (!addresses) return;
      const key = networkOf(address);
      refuseAddress(key, addresses.spend(key));
    },
    requireAttempt(address) {
      if (!addresses) return;
      const key = networkOf(address);
      refuseAddress(key, addresses.delay(key));
    },
    countFailure(address, hadCredential) {
      addresses?.charge(networkOf(address), hadCredential ? WRONG_CREDENTIAL_COST : 1);
    },
    change(rates) {
      if (rates.perIdentity !== perIdentity) identities = limiter(rates.perIdentity);
      if (rates.perAddress !== perAddress) addresses = limiter(rates.perAddress);
      ({ perIdentity, perAddress } = rates);
    },
  };
}

/**
 * The part of an address that one client controls. An IPv6 client usually has 2^64 addresses, so it is the first half.
 * An IPv4 address that is written as IPv6 (`::ffff:192.0.2.1`) is the IPv4 address.
 */
export function networkOf(address: string): string {
  if (!address.includes(':')) return address;
  const lower = address.toLowerCase().replace(/^\[|\]$|%.*$/g, '');
  const ipv4 = /^::ffff:([0-9.]+)$/.exec(lower)?.[1];
  if (ipv4 !== undefined) return ipv4;
  const [head = '', tail] = lower.split('::', 2);
  const groups = head === '' ? [] : head.split(':');
  // `::` stands for the zeros that are missing to eight groups.
  const after = tail === undefined || tail === '' ? [] : tail.split(':');
  while (tail !== undefined && groups.length + after.length < 8) groups.push('0');
  return `${[...groups, ...after]
    .slice(0, 4)
    .map((group) => group.replace(/^0+(?=.)/, ''))
    .join(':')}::/64`;
}
