import { type BlockList, isIP } from 'node:net';
import { parseForwarded } from './forwarded.ts';

type Header = string | string[] | undefined;

/** The headers by which proxies tell what they know about a client. */
export interface ForwardingHeaders {
  readonly forwarded?: Header;
  readonly 'x-forwarded-for'?: Header;
  readonly 'x-forwarded-host'?: Header;
  readonly 'x-forwarded-proto'?: Header;
}

/** What is known about the client of a request. */
export interface ClientRequest {
  readonly address: string;
  /** The host and port that the client has sent the request to, if a trusted proxy says so. */
  readonly host?: string | undefined;
  readonly scheme?: 'http' | 'https' | undefined;
}

/** Returns the address of the client of a request, from the address of its connection and its headers. */
export type ClientAddress = (peer: string, headers: ForwardingHeaders) => string;

export type ReadClientRequest = (peer: string, headers: ForwardingHeaders) => ClientRequest;

/** The address of the connection: what a client sends about itself proves nothing. */
export const peerAddress: ClientAddress = (peer) => peer;

/**
 * Reads `Forwarded` (RFC 7239) and `X-Forwarded-For`, `-Host` and `-Proto` of requests that come from a trusted proxy.
 * Each proxy appends the address that it got the request from, so the client is the last address that is not a trusted
 * proxy. Everything before it was sent by the client, and can be anything.
 *
 * Most proxies write one of the two kinds and pass on what a client sends as the other. So if a request has both, they
 * must agree. Otherwise neither is believed, and the client counts as the proxy.
 */
export function createForwarding(trusted: BlockList): ReadClientRequest {
  const isTrusted = (address: string): boolean =>
    isIP(address) !== 0 && trusted.check(address, isIP(address) === 6 ? 'ipv6' : 'ipv4');

  /** Follows the entries from the last to the first for as long as they were written by a trusted proxy. */
  function follow(peer: string, entries: readonly string[]): { readonly address: string; readonly believed: number } {
    let address = peer;
    for (let believed = 0; believed < entries.length; believed++) {
      if (!isTrusted(address)) return { address, believed };
      const next = addressIn(entries.at(-1 - believed) ?? '');
      if (next === undefined) return { address, believed: believed + 1 };
      address = next;
    }
    return { address, believed: entries.length };
  }

  function fromForwarded(peer: string, header: string): ClientRequest | undefined {
    const elements = parseForwarded(header);
    if (!elements) return undefined;
    const { address, believed } = follow(
      peer,
      elements.map((element) => element.for ?? ''),
    );
    const { host, proto } = elements[elements.length - believed] ?? {};
    return { address, host, scheme: schemeOf(proto) };
  }

  function fromXForwarded(peer: string, headers: ForwardingHeaders): ClientRequest {
    const { address, believed } = follow(peer, listOf(headers['x-forwarded-for']));
    // Many proxies overwrite these two instead of appending to them, so there can be fewer values than addresses.
    const outermost = (values: readonly string[]): string | undefined =>
      values[Math.max(0, values.length - Math.max(1, believed))];
    const host = outermost(listOf(headers['x-forwarded-host']));
    return { address, host, scheme: schemeOf(outermost(listOf(headers['x-forwarded-proto']))) };
  }

  return (connectionPeer, headers) => {
    const peer = withoutMapping(connectionPeer);
    const { forwarded } = headers;
    if (!isTrusted(peer)) return { address: peer };
    if (forwarded === undefined) return fromXForwarded(peer, headers);
    const client = fromForwarded(peer, String(forwarded));
    if (client === undefined) return { address: peer };
    const other = fromXForwarded(peer, headers);
    return {
      address: headers['x-forwarded-for'] === undefined || other.address === client.address ? client.address : peer,
      host: agreed(client.host, other.host),
      scheme: agreed(client.scheme, other.scheme),
    };
  };
}

const agreed = <T>(one: T | undefined, other: T | undefined): T | undefined =>
  one === undefined || other === undefined || one === other ? (one ?? other) : undefined;

const schemeOf = (text: string | undefined): 'http' | 'https' | undefined => {
  const scheme = text?.toLowerCase();
  return scheme === 'http' || scheme === 'https' ? scheme : undefined;
};

function listOf(header: Header): readonly string[] {
  if (header === undefined) return [];
  return String(header)
    .split(',')
    .map((part) => part.trim());
}

/** The address of an entry, which may have a port. Undefined for anything else, such as `unknown`. */
function addressIn(entry: string): string | undefined {
  const [, bracketed, ipv4] = /^\[([0-9a-f:.]+)\](?::\w+)?$|^([0-9.]+)(?::\w+)?$/i.exec(entry) ?? [];
  const address = withoutMapping(bracketed ?? ipv4 ?? entry);
  return isIP(address) === 0 ? undefined : address;
}

/** An IPv4 address, if it is written as IPv6: `::ffff:192.0.2.1`. */
export const withoutMapping = (address: string): string => address.replace(/^::ffff:(?=[0-9.]+$)/i, '');
