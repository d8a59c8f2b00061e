import { type AddressInfo, createServer, type Server, type Socket } from 'node:net';
import type { Address } from '../../config-values.ts';
import { BACKLOG } from '../../transport/limits.ts';

export interface Dealer {
  readonly port: number;
  /** From now on this one gets its share of new connections. */
  add(taker: Taker): void;
  remove(taker: Taker): void;
  /** Accepts nothing more. */
  close(): void;
}

interface Taker {
  take(socket: Socket): void;
}

/**
 * Accepts connections and deals them out in turn. Left to the kernel, the process that was busy last would get most of
 * them; and node:cluster, which also deals them out, forgets those that it has just given to a process that dies.
 */
export async function createDealer({ host, port }: Address): Promise<Dealer> {
  const takers: Taker[] = [];
  /** Came before the first worker was ready. */
  const early: Socket[] = [];
  const server = createServer({ pauseOnConnect: true, allowHalfOpen: true, noDelay: true }, (socket) => {
    const taker = takers.shift();
    if (taker === undefined) return void early.push(socket.on('error', () => {}));
    takers.push(taker);
    taker.take(socket);
  });
  const bound = await listen(server, host, port);
  return {
    port: bound.port,
    add(taker) {
      takers.push(taker);
      for (const socket of early.splice(0)) taker.take(socket);
    },
    remove(taker) {
      const at = takers.indexOf(taker);
      if (at >= 0) takers.splice(at, 1);
    },
    close: () => void server.close(),
  };
}

const listen = (server: Server, host: string, port: number): Promise<AddressInfo> =>
  new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen({ host, port, backlog: BACKLOG }, () => resolve(server.address() as AddressInfo));
  });
