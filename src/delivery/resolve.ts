import type { LookupAddress } from 'node:dns';
import { Resolver } from 'node:dns/promises';
import type { LookupFunction } from 'node:net';
import { isPublicAddress } from '../base/addresses.ts';
import { isLoopbackHost } from '../base/issuer.ts';
import { NO_PUBLIC_ADDRESS, OutgoingError } from '../identity/guard.ts';

/** As much of a resolver as it takes. */
export type Names = Pick<Resolver, 'resolve4' | 'resolve6'>;

const LOOPBACK: LookupAddress[] = [
  { address: '127.0.0.1', family: 4 },
  { address: '::1', family: 6 },
];

/**
 * Resolves the names of sinks by DNS, not by the system's resolver as the rest of Node does: that one holds one of the
 * four threads that also sign tokens and read files, and a few names that are slow to resolve would bring all of it to a
 * halt. Give it to the socket: the addresses that were checked are then the very ones it connects to.
 */
export function sinkLookup(
  allowPrivate: boolean,
  names: Names = new Resolver({ timeout: 1_500, tries: 2 }),
): LookupFunction {
  async function resolve(hostname: string): Promise<LookupAddress[]> {
    if (isLoopbackHost(hostname)) return LOOPBACK;
    const [v4, v6] = await Promise.allSettled([names.resolve4(hostname), names.resolve6(hostname)]);
    return [
      ...(v4.status === 'fulfilled' ? v4.value.map((address) => ({ address, family: 4 })) : []),
      ...(v6.status === 'fulfilled' ? v6.value.map((address) => ({ address, family: 6 })) : []),
    ];
  }

  return (hostname, options, callback) =>
    void resolve(hostname).then((addresses) => {
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
