import { isIPv6, type Socket } from 'node:net';
import type { Log } from '../base/log.ts';
import type { Limits } from './limits.ts';

/** The log says at most once in this time that connections are refused. */
const LOG_INTERVAL_MS = 60_000;

export interface ConnectionCounter {
  /** Counts a connection until it closes. Returns false if there are too many already. */
  admit(socket: Socket): boolean;
}

/** Counts open connections, in total and by client address. */
export function createConnectionCounter(
  limits: Pick<Limits, 'connections' | 'connectionsPerAddress'>,
  log: Log,
): ConnectionCounter {
  const byNetwork = new Map<string, number>();
  let total = 0;
  let refused = 0;
  let logged = Number.NEGATIVE_INFINITY;

  function refuse(network: string, setting: string): false {
    refused++;
    if (performance.now() - logged >= LOG_INTERVAL_MS) {
      logged = performance.now();
      log.warn({ refused, address: network, open: total }, `too many connections; ${setting} is the limit`);
      refused = 0;
    }
    return false;
  }

  return {
    admit(socket) {
      const network = networkOf(socket.remoteAddress ?? '');
      const count = byNetwork.get(network) ?? 0;
      if (total >= limits.connections) return refuse(network, 'WHARF_MAX_CONNECTIONS');
      if (count >= limits.connectionsPerAddress) return refuse(network, 'WHARF_MAX_CONNECTIONS_PER_ADDRESS');
      total++;
      byNetwork.set(network, count + 1);
      socket.once('close', () => {
        total--;
        const left = (byNetwork.get(network) ?? 1) - 1;
        if (left === 0) byNetwork.delete(network);
        else byNetwork.set(network, left);
      });
      return true;
    },
  };
}

/** Returns an IPv4 address as it is, and the /64 network of an IPv6 address: one client has all addresses of it. */
export function networkOf(address: string): string {
  if (!isIPv6(address)) return address;
  const [, ipv4] = /^::ffff:([0-9.]+)$/i.exec(address) ?? [];
  if (ipv4 !== undefined) return ipv4;
  const [head = '', tail] = (address.split('%', 1)[0] ?? '').split('::');
  const left = head === '' ? [] : head.split(':');
  const right = tail === undefined || tail === '' ? [] : tail.split(':');
  const groups = [...left, ...Array<string>(Math.max(0, 8 - left.length - right.length)).fill('0'), ...right];
  return `${groups.slice(0, 4).join(':')}::/64`;
}
