import { type AddressInfo, createServer, type Socket } from 'node:net';
import { BACKLOG } from './limits.ts';

/** A port that accepts connections. They wait until `serve` is called. */
export interface Port {
  readonly port: number;
  /** Passes on all connections, those that are waiting first. */
  serve(accept: (socket: Socket) => void): void;
  /** Accepts no further connections. Resolves when the last one has been passed on. */
  close(): Promise<void>;
}

export interface PortOptions {
  /** Called when a connection cannot be accepted, for example because the process has too many open files. */
  readonly onError?: (error: Error) => void;
  /** Reads nothing from a connection, so that it can be handed over to another process. */
  readonly pauseOnConnect?: boolean;
}

/** Starts to listen. Rejects if the address is in use or not one of this machine. */
export function openPort(
  { host, port }: { readonly host: string; readonly port: number },
  { onError = () => {}, pauseOnConnect = false }: PortOptions = {},
): Promise<Port> {
  const waiting: Socket[] = [];
  let accept = (socket: Socket): void => void waiting.push(socket.on('error', () => {}));
  // With half-open connections a client may close its side after the request and still read the response.
  const server = createServer({ allowHalfOpen: true, noDelay: true, pauseOnConnect }, (socket) => accept(socket));
  return new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen({ host, port, backlog: BACKLOG }, () => {
      server.off('error', reject).on('error', onError);
      resolve({
        port: (server.address() as AddressInfo).port,
        serve(next) {
          accept = next;
          for (const socket of waiting.splice(0)) if (!socket.destroyed) accept(socket);
        },
        async close() {
          // Connections that are established but not yet accepted are reset. Right after polling there are the fewest.
          await new Promise(setImmediate);
          server.close();
          for (const socket of waiting.splice(0)) socket.destroy();
        },
      });
    });
  });
}
