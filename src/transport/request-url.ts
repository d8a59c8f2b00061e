import type { IncomingMessage } from 'node:http';
import { isIP } from 'node:net';
import { type ReadClientRequest, withoutMapping } from './forwarding.ts';

/** Returns the URL of this server as the client of a request knows it, without a slash at the end. */
export type RequestUrl = (req: Pick<IncomingMessage, 'headers' | 'socket'>) => string;

export interface RequestUrlOptions {
  /** The URL of this server for all other clients. Its scheme is the one that the port serves. */
  readonly fixedUrl: string;
  /** Names and addresses that clients may use, such as `wharf.example.com`, or `*.example.com` for all below it. */
  readonly allowedHosts: readonly string[];
  /** Absent if no proxy is trusted. */
  readonly readClientRequest?: ReadClientRequest | undefined;
}

/**
 * Follows the host that a client has used, if it is an allowed one or the address that the client has connected to. A
 * forged Host header could otherwise plant a foreign URL into a response that others see, for example through a cache.
 */
export function followRequests({ fixedUrl, allowedHosts, readClientRequest }: RequestUrlOptions): RequestUrl {
  const ownScheme = new URL(fixedUrl).protocol.slice(0, -1);
  const names = new Set(allowedHosts.map(canonicalName));
  const suffixes = allowedHosts.filter((host) => host.startsWith('*.')).map((host) => host.slice(1).toLowerCase());
  return ({ headers, socket }) => {
    const forwarded = readClientRequest?.(socket.remoteAddress ?? '', headers);
    const host = parseHost(forwarded?.host ?? headers.host ?? '');
    if (host === undefined) return fixedUrl;
    const isAllowed =
      names.has(host.name) ||
      suffixes.some((suffix) => host.name.endsWith(suffix)) ||
      (isIP(host.name) !== 0 && host.name === canonicalName(withoutMapping(socket.localAddress ?? '')));
    return isAllowed ? `${forwarded?.scheme ?? ownScheme}://${host.text}` : fixedUrl;
  };
}

interface Host {
  /** In lower case, without brackets and port. */
  readonly name: string;
  /** As it is part of a URL. */
  readonly text: string;
}

/** Parses a Host header. Only what cannot end a quoted string or a URL is accepted. */
function parseHost(header: string): Host | undefined {
  if (!/^(?:\[[0-9a-f:.]+\]|[a-z0-9_.-]+)(?::[0-9]{1,5})?$/i.test(header)) return undefined;
  const url = URL.canParse(`http://${header}`) ? new URL(`http://${header}`) : undefined;
  if (url === undefined) return undefined;
  // The port 80 is part of the URL if the scheme becomes https.
  const port = /:([0-9]+)$/.exec(header.replace(/^\[.*\]/, ''))?.[1];
  return {
    name: canonicalName(url.hostname),
    text: port === undefined ? url.hostname : `${url.hostname}:${Number(port)}`,
  };
}

/** A name in lower case without the dot at its end, or an address in its shortest form. */
function canonicalName(name: string): string {
  const address = name.replace(/^\[(.*)\]$/, '$1');
  if (isIP(address) === 6) return new URL(`http://[${address}]`).hostname.slice(1, -1);
  return address.toLowerCase().replace(/\.$/, '');
}
