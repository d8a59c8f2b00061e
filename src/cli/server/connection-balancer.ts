import { type AddressInfo, createServer, type Server, type Socket } from 'node:net';
import type { Address } from '../../config-values.ts';
import { BACKLOG } from '../../transport/limits.ts';

export interface ConnectionBalancer {
  readonly port: number;
  /** Adds a backend to the round robin. */
  add(backend: Backend): void;
  remove(backend: Backend): void;
  /** Accepts no more connections. */
  close(): void;
}

/** A process that connections are handed over to. */
export interface Backend {
  handOver(socket: Socket): void;
}

/**
 * Accepts connections and hands them over to its backends by round robin. If the processes shared the port, the kernel
 * would give most connections to the one that was busy last. node:cluster also uses round robin, but loses the
 * connections that it has just handed over to a process that ends.
 */
export async function createConnectionBalancer({ host, port }: Address): Promise<ConnectionBalancer> {
  const backends: Backend[] = [];
  /** Connections that were accepted while there was no backend. */
  const waiting: Socket[] = [];
  const server = createServer({ pauseOnConnect: true, allowHalfOpen: true, noDelay: true }, (socket) => {
    const backend = backends.shift();
    if (backend === undefined) return void waiting.push(socket.on('error', () => {}));
    backends.push(backend);
    backend.handOver(socket);
  });
  const bound = await listen(server, host, port);
  return {
    port: bound.port,
    add(backend) {
      backends.push(backend);
      for (const socket of waiting.splice(0)) backend.handOver(socket);
    },
    remove(backend) {
      const index = backends.indexOf(backend);
      if (index >= 0) backends.splice(index, 1);
    },
    close: () => void server.close(),
  };
}

const listen = (server: Server, host: string, port: number): Promise<AddressInfo> =>
  new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen({ host, port, backlog: BACKLOG }, () => resolve(server.address() as AddressInfo));
  });
