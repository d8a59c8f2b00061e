import type { LookupAddress } from 'node:dns';
import { Resolver } from 'node:dns/promises';
import { isIP, type LookupFunction } from 'node:net';
import { isPublicAddress } from '../../base/ip-address.ts';
import { isLoopbackHost } from '../../base/issuer-url.ts';
import { NO_PUBLIC_ADDRESS, OutgoingError } from './permitted-url.ts';
import { type ResolverConfig, systemResolverConfig } from './resolver-config.ts';

export type DnsResolver = Pick<Resolver, 'resolve4' | 'resolve6' | 'cancel'>;

export interface GuardedLookupOptions {
  /** Called for each host name, because `cancel` cancels all queries of a resolver. */
  readonly createResolver?: () => DnsResolver;
  readonly resolverConfig?: ResolverConfig;
  /** For all DNS queries of one host name. */
  readonly timeoutMs?: number;
}

const LOOPBACK: LookupAddress[] = [
  { address: '127.0.0.1', family: 4 },
  { address: '::1', family: 6 },
];

/**
 * Resolves host names of URLs that users configured. Fails unless every address is public or private ones are allowed.
 * Pass it to the socket as `lookup`: the socket connects to the addresses that were checked, so DNS rebinding has no
 * effect.
 *
 * It queries DNS itself. The resolver of the system, which Node uses by default, blocks one of the four threads that
 * also sign tokens and read files, so a few names that resolve slowly would stop all of that. When private addresses
 * are allowed, names from /etc/hosts and short names with the search list also work, as they do within a cluster.
 */
export function guardedLookup(
  allowPrivate: boolean,
  {
    createResolver = () => new Resolver({ timeout: 1_500, tries: 2 }),
    resolverConfig = systemResolverConfig(),
    timeoutMs = 5_000,
  }: GuardedLookupOptions = {},
): LookupFunction {
  async function resolve(hostname: string): Promise<LookupAddress[]> {
    if (isLoopbackHost(hostname)) return LOOPBACK;
    if (!allowPrivate) return withTimeout((resolver) => query(resolver, hostname));
    const hostsFileAddresses = await resolverConfig.hostsFileAddresses(hostname);
    if (hostsFileAddresses.length > 0) return hostsFileAddresses.map(toLookupAddress);
    return withTimeout(async (resolver, isTimedOut) => {
      for (const name of await resolverConfig.candidateNames(hostname)) {
        const addresses = isTimedOut() ? [] : await query(resolver, name);
        if (addresses.length > 0) return addresses;
      }
      return [];
    });
  }

  /** A name that cannot be queried, such as one with spaces, has no addresses. */
  const resolveOrNone = (hostname: string): Promise<LookupAddress[]> => resolve(hostname).catch(() => []);

  async function withTimeout(
    work: (resolver: DnsResolver, isTimedOut: () => boolean) => Promise<LookupAddress[]>,
  ): Promise<LookupAddress[]> {
    const resolver = createResolver();
    let timedOut = false;
    const timer = setTimeout(() => {
      timedOut = true;
      resolver.cancel();
    }, timeoutMs);
    return work(resolver, () => timedOut).finally(() => clearTimeout(timer));
  }

  return (hostname, options, callback) =>
    void resolveOrNone(hostname).then((addresses) => {
      const [first] = addresses;
      if (!first || !(allowPrivate || addresses.every(({ address }) => isPublicAddress(address)))) {
        callback(new OutgoingError(NO_PUBLIC_ADDRESS), []);
      } else if (options.all) {
        callback(null, addresses);
      } else {
        callback(null, first.address, first.family);
      }
    });
}

/** Returns the IPv4 and IPv6 addresses of a name. A query that fails has no addresses. */
async function query(resolver: DnsResolver, hostname: string): Promise<LookupAddress[]> {
  const results = await Promise.allSettled([resolver.resolve4(hostname), resolver.resolve6(hostname)]);
  return results.flatMap((result) => (result.status === 'fulfilled' ? result.value.map(toLookupAddress) : []));
}

function toLookupAddress(address: string): LookupAddress {
  return { address, family: isIP(address) };
}
