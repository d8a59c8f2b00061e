import type { Socket } from 'node:net';
import type { Address } from '../../config-values.ts';
import { openPort } from '../../transport/port.ts';

export interface ConnectionBalancer {
  readonly port: number;
  /** Adds a backend to the round robin. */
  add(backend: Backend): void;
  remove(backend: Backend): void;
  /** Accepts no more connections. */
  close(): Promise<void>;
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
export async function createConnectionBalancer(address: Address): Promise<ConnectionBalancer> {
  const backends: Backend[] = [];
  /** Connections that were accepted while there was no backend. */
  const waiting: Socket[] = [];
  const port = await openPort(address, { pauseOnConnect: true });
  port.serve((socket) => {
    const backend = backends.shift();
    if (backend === undefined) return void waiting.push(socket.on('error', () => {}));
    backends.push(backend);
    backend.handOver(socket);
  });
  return {
    port: port.port,
    add(backend) {
      backends.push(backend);
      for (const socket of waiting.splice(0)) backend.handOver(socket);
    },
    remove(backend) {
      const index = backends.indexOf(backend);
      if (index >= 0) backends.splice(index, 1);
    },
    async close() {
      await port.close();
      for (const socket of waiting.splice(0)) socket.destroy();
    },
  };
}
