import { type BlockList, isIP } from 'node:net';

/** Returns the address of the client of a request, from the address of its connection and its `X-Forwarded-For`. */
export type ClientAddress = (peer: string, forwardedFor: string | undefined) => string;

/** The address of the connection: what a client sends about itself proves nothing. */
export const peerAddress: ClientAddress = (peer) => peer;

/**
 * Reads `X-Forwarded-For` of requests that come from a trusted proxy. Each proxy appends the address that it got the
 * request from, so the client is the last address that is not a trusted proxy. Everything before it was sent by the
 * client, and can be anything.
 */
export function createClientAddress(trusted: BlockList): ClientAddress {
  const isTrusted = (address: string): boolean => trusted.check(address, isIP(address) === 6 ? 'ipv6' : 'ipv4');
  return (peer, forwardedFor) => {
    let client = withoutMapping(peer);
    if (forwardedFor === undefined) return client;
    const hops = forwardedFor.split(',');
    while (isIP(client) !== 0 && isTrusted(client)) {
      const hop = addressIn(hops.pop() ?? '');
      if (hop === undefined) break;
      client = hop;
    }
    return client;
  };
}

/** The address of an entry, which may have a port. Undefined for anything else, such as `unknown`. */
function addressIn(entry: string): string | undefined {
  const text = entry.trim();
  const [, bracketed, ipv4] = /^\[([0-9a-f:.]+)\](?::\d+)?$|^([0-9.]+)(?::\d+)?$/i.exec(text) ?? [];
  const address = withoutMapping(bracketed ?? ipv4 ?? text);
  return isIP(address) === 0 ? undefined : address;
}

/** An IPv4 address, if it is written as IPv6: `::ffff:192.0.2.1`. */
const withoutMapping = (address: string): string => address.replace(/^::ffff:(?=[0-9.]+$)/i, '');
