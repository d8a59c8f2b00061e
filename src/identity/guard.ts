import { lookup } from 'node:dns';
import { isIP, type LookupFunction } from 'node:net';
import { isPublicAddress } from '../base/addresses.ts';
import { isLoopbackHost } from '../base/issuer.ts';

/**
 * A request of ours that failed. The message is fit for whoever named the address: it says what they can mend, and
 * nothing that lets them feel their way around our network. The cause is for the log.
 */
export class OutgoingError extends Error {
  override readonly name = 'OutgoingError';
}

/** The same words for a name that does not exist and one that leads inside, so that nobody can tell them apart. */
export const NO_PUBLIC_ADDRESS = 'its host has no public address';

/** Refuses what others must not make this server connect to. Names are checked by publicLookup, when they are resolved. */
export function permittedUrl(text: string, allowPrivate: boolean): URL {
  if (!URL.canParse(text)) throw new OutgoingError('its address is not a URL');
  const url = new URL(text);
  const plain = url.protocol === 'http:' && allowPrivate && isLoopbackHost(url.hostname);
  if (url.protocol !== 'https:' && !plain) throw new OutgoingError('its address does not begin with https://');
  if (url.username !== '' || url.password !== '') throw new OutgoingError('its address has a user name');
  const host = url.hostname.replace(/^\[|\]$/g, '');
  // An address needs no resolving, so the socket would never ask publicLookup.
  if (!allowPrivate && isIP(host) !== 0 && !isPublicAddress(host)) throw new OutgoingError(NO_PUBLIC_ADDRESS);
  return url;
}

/**
 * Resolves a name as the system does, and fails unless every address is public. Give it to the socket: the addresses
 * that were checked are then the very ones it connects to, so a name that changes its mind in between gains nothing.
 */
export const publicLookup: LookupFunction = (hostname, options, callback) =>
  lookup(hostname, { ...options, all: true }, (error, addresses = []) => {
    const [first] = addresses;
    if (error || !first || !addresses.every(({ address }) => isPublicAddress(address))) {
      callback(new OutgoingError(NO_PUBLIC_ADDRESS, { cause: error }), []);
    } else if (options.all) {
      callback(null, addresses);
    } else {
      callback(null, first.address, first.family);
    }
  });
