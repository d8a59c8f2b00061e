import type { IncomingMessage, ServerResponse } from 'node:http';
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net';
import { createServer as createTlsServer, type TLSSocket } from 'node:tls';
import type { Log } from '../base/log.ts';
import type { Arrival } from './body-timeout.ts';
import { createHttpServer } from './http-server.ts';
import { BACKLOG, defaultLimits, type Limits } from './limits.ts';
import { type Protocol, sniff } from './protocol-detection.ts';

const STOP_GRACE_MS = 10_000;

export interface ListenerOptions {
  readonly http: (req: IncomingMessage, res: ServerResponse, arrival: Arrival) => void;
  readonly grpc: {
    accept(socket: Socket): void;
    /** Refuses new calls, lets the running ones end, and lets go of everything when all connections are `closed`. */
    stop(closed: Promise<void>): Promise<void>;
  };
  /** PEM texts; without them the wire is plaintext. */
  readonly tls?: { readonly cert: string; readonly key: string };
  readonly limits?: Limits;
  readonly serviceDomain: string;
  readonly newRequestId: () => string;
  readonly log: Log;
}

export interface Listener {
  listen(host: string, port: number): Promise<AddressInfo>;
  /** Takes a connection that somebody else accepted. */
  accept(socket: Socket): void;
  /** Accepts nothing more, lets running requests finish, and cuts off what is left after the grace. */
  stop(graceMs?: number): Promise<void>;
}

/** One port for HTTP/1.1 and gRPC. */
export function createListener(options: ListenerOptions): Listener {
  const { grpc, tls, limits = defaultLimits, serviceDomain, newRequestId, log } = options;
  const http = createHttpServer({ handle: options.http, limits, serviceDomain, newRequestId });
  /** Everything accepted and not yet closed, TLS handshakes included. */
  const open = new Set<Socket>();
  const undecided = new Set<Socket>();
  let stopped: Promise<void> | undefined;
  let allClosed = (): void => {};

  // With half-open connections a client may send its request, close its side, and still read the answer.
  const server = tls ? secureServer(tls) : createServer({ allowHalfOpen: true, noDelay: true });
  server.on('connection', (socket: Socket) => {
    open.add(socket);
    watch(socket);
    if (!tls) greet(socket);
  });

  function secureServer({ cert, key }: { cert: string; key: string }): Server {
    const secure = createTlsServer({
      cert,
      key,
      minVersion: 'TLSv1.2',
      handshakeTimeout: limits.headersMs,
      allowHalfOpen: true,
      noDelay: true,
      // Browsers and curl offer both and speak JSON; a gRPC client offers only h2.
      ALPNCallback: ({ protocols }) => ['http/1.1', 'h2'].find((protocol) => protocols.includes(protocol)),
    });
    secure.on('tlsClientError', (error, socket) => {
      log.debug({ error: error.message }, 'TLS handshake failed');
      // After a time-out Node reports and leaves the connection open.
      socket.destroy();
    });
    return secure.on('secureConnection', (socket: TLSSocket) => {
      watch(socket);
      if (socket.alpnProtocol) route(socket, socket.alpnProtocol as Protocol);
      else greet(socket);
    });
  }

  function watch(socket: Socket): void {
    socket.on('close', closed).on('error', ignored);
  }

  /** Finds out what the client speaks. */
  function greet(socket: Socket): void {
    undecided.add(socket);
    sniff(socket, limits.headersMs, (protocol) => {
      undecided.delete(socket);
      route(socket, protocol);
    });
  }

  function route(socket: Socket, protocol: Protocol): void {
    if (stopped) {
      socket.destroy();
    } else if (protocol === 'http/1.1') {
      http.accept(socket);
    } else {
      // An HTTP/2 session ends with either side; half open it would stay for ever.
      socket.allowHalfOpen = false;
      grpc.accept(socket);
    }
  }

  function closed(this: Socket): void {
    open.delete(this);
    undecided.delete(this);
    if (open.size === 0) allClosed();
  }

  /** A client that vanishes is no trouble of ours; 'close' follows and cleans up. */
  function ignored(error: Error): void {
    log.debug({ error: error.message }, 'connection failed');
  }

  const listen = (host: string, port: number): Promise<AddressInfo> =>
    new Promise((resolve, reject) => {
      server.once('error', reject);
      server.listen({ host, port, backlog: BACKLOG }, () => {
        server.off('error', reject).on('error', (error) => log.warn({ error }, 'cannot accept a connection'));
        resolve(server.address() as AddressInfo);
      });
    });

  async function finish(graceMs: number): Promise<void> {
    const closing = new Promise<void>((resolve) => {
      allClosed = resolve;
      if (open.size === 0) resolve();
    });
    server.close();
    for (const socket of undecided) socket.destroy();
    http.stop();
    const timer = setTimeout(() => {
      log.warn({ connections: open.size }, 'cutting off connections that did not finish in time');
      for (const socket of open) socket.destroy();
    }, graceMs);
    await grpc.stop(closing);
    clearTimeout(timer);
  }

  return {
    listen,
    accept: (socket) => void server.emit('connection', socket),
    stop(graceMs = STOP_GRACE_MS) {
      stopped ??= finish(graceMs);
      return stopped;
    },
  };
}
