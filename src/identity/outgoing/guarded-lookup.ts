import type { LookupAddress } from 'node:dns';
import { Resolver } from 'node:dns/promises';
import { isIP, type LookupFunction } from 'node:net';
import { isPublicAddress } from '../../base/ip-address.ts';
import { isLoopbackHost } from '../../base/issuer-url.ts';
import { NO_PUBLIC_ADDRESS, OutgoingError } from './permitted-url.ts';
import { type SystemNames, systemNames } from './system-names.ts';

/** As much of a resolver as it takes. */
export type Names = Pick<Resolver, 'resolve4' | 'resolve6' | 'cancel'>;

export interface GuardedLookupOptions {
  /** A fresh one for each name, so that giving up on one touches no other. */
  readonly newNames?: () => Names;
  readonly system?: SystemNames;
  /** The longest that a name may take. */
  readonly timeoutMs?: number;
}

const LOOPBACK: LookupAddress[] = ['127.0.0.1', '::1'].map(asFound);

/**
 * Resolves names that others chose, and fails unless every address is public, or private ones are allowed. Give it to the
 * socket: the addresses that were checked are then the very ones it connects to, so a name that changes its mind in
 * between gains nothing.
 *
 * It asks DNS itself, not the system's resolver as the rest of Node does: that one holds one of the four threads that also
 * sign tokens and read files, and a few names that are slow to resolve would bring all of it to a halt. Where private
 * addresses are allowed, names may also be short, or known to this machine alone, as they are within a cluster.
 */
export function guardedLookup(
  allowPrivate: boolean,
  {
    newNames = () => new Resolver({ timeout: 1_500, tries: 2 }),
    system = systemNames(),
    timeoutMs = 5_000,
  }: GuardedLookupOptions = {},
): LookupFunction {
  async function resolve(hostname: string): Promise<LookupAddress[]> {
    if (isLoopbackHost(hostname)) return LOOPBACK;
    if (!allowPrivate) return inTime((names) => ask(names, hostname));
    const own = await system.addressesOf(hostname);
    if (own.length > 0) return own.map(asFound);
    return inTime(async (names, isLate) => {
      for (const name of await system.completed(hostname)) {
        const found = isLate() ? [] : await ask(names, name);
        if (found.length > 0) return found;
      }
      return [];
    });
  }

  /** What cannot even be asked for is not there. */
  const found = (hostname: string): Promise<LookupAddress[]> => resolve(hostname).catch(() => []);

  async function inTime(work: (names: Names, isLate: () => boolean) => Promise<LookupAddress[]>) {
    const names = newNames();
    let late = false;
    const timer = setTimeout(() => {
      late = true;
      names.cancel();
    }, timeoutMs);
    return work(names, () => late).finally(() => clearTimeout(timer));
  }

  return (hostname, options, callback) =>
    void found(hostname).then((addresses) => {
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

/** Whatever either family has; a name that has nothing, or cannot be asked for, has no addresses. */
async function ask(names: Names, hostname: string): Promise<LookupAddress[]> {
  const answers = await Promise.allSettled([names.resolve4(hostname), names.resolve6(hostname)]);
  return answers.flatMap((answer) => (answer.status === 'fulfilled' ? answer.value.map(asFound) : []));
}

function asFound(address: string): LookupAddress {
  return { address, family: isIP(address) };
}
