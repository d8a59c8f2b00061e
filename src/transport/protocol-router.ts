import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { createServer as createTlsServer, type TLSSocket, type Server as TlsServer } from 'node:tls';
import type { Log } from '../base/log.ts';
import { createMemoryBudget, type MemoryBudget } from '../base/memory-budget.ts';
import type { BodyTimeout } from './body-timeout.ts';
import { createConnectionCounter } from './connection-counter.ts';
import { createHttpServer } from './http-server.ts';
import { defaultLimits, type Limits } from './limits.ts';
import { detectProtocol, type Protocol } from './protocol-detection.ts';
import type { TlsPair } from './tls-files.ts';
import { closeUnreadConnections } from './unread-connections.ts';

const STOP_GRACE_MS = 10_000;

export interface ProtocolRouterOptions {
  readonly http: (req: IncomingMessage, res: ServerResponse, bodyTimeout: BodyTimeout) => void;
  readonly grpc: {
    accept(socket: Socket): void;
    /** Refuses new calls, waits for running calls, and frees all resources when all connections are `closed`. */
    stop(closed: Promise<void>): Promise<void>;
  };
  /** Without it, the router serves plaintext. */
  readonly tls?: TlsPair;
  /** With TLS, how long browsers use only https for this host. 0 sends no such header. */
  readonly hstsSeconds?: number;
  readonly limits?: Limits;
  /** Shared by all that reads requests which are not yet authenticated. */
  readonly unauthenticated?: MemoryBudget;
  readonly serviceDomain: string;
  readonly newRequestId: () => string;
  readonly log: Log;
}

export interface ProtocolRouter {
  /** Serves a connection that a port has accepted. */
  accept(socket: Socket): void;
  /** Uses another certificate for new connections. */
  useCertificate(pair: TlsPair): void;
  /** Waits for running requests, and closes the remaining connections after the grace. */
  stop(graceMs?: number): Promise<void>;
}

/** Serves HTTP/1.1 and gRPC on the connections of one port. */
export function createProtocolRouter(options: ProtocolRouterOptions): ProtocolRouter {
  const { grpc, tls, hstsSeconds = 0, limits = defaultLimits, serviceDomain, newRequestId, log } = options;
  const { unauthenticated = createMemoryBudget(limits.unauthenticatedBytes) } = options;
  const http = createHttpServer({
    handle: options.http,
    limits,
    unauthenticated,
    serviceDomain,
    newRequestId,
    hstsSeconds: tls ? hstsSeconds : 0,
  });
  /** All open connections, including those in a TLS handshake. */
  const open = new Set<Socket>();
  const counter = createConnectionCounter(limits, log);
  const unreadTimer = closeUnreadConnections(open, limits.unreadMs, log);
  /** Connections whose protocol is not detected yet. */
  const undetected = new Set<Socket>();
  let stopped: Promise<void> | undefined;
  let allClosed = (): void => {};

  const secure = tls && createTls(tls);

  function accept(socket: Socket): void {
    if (!counter.admit(socket)) {
      socket.destroy();
      return;
    }
    open.add(socket);
    watch(socket);
    if (secure) secure.emit('connection', socket);
    else routeByFirstBytes(socket);
  }

  /** Only for handshakes: it does not listen itself. */
  function createTls(pair: TlsPair): TlsServer {
    const server = createTlsServer({
      ...contextOptions(pair),
      handshakeTimeout: limits.headersMs,
      allowHalfOpen: true,
      noDelay: true,
      // Browsers and curl offer both and use REST. A gRPC client offers only h2.
      ALPNCallback: ({ protocols }) => ['http/1.1', 'h2'].find((protocol) => protocols.includes(protocol)),
    });
    server.on('tlsClientError', (error, socket) => {
      log.debug({ error: error.message }, 'TLS handshake failed');
      // After a timeout Node reports the error but leaves the connection open.
      socket.destroy();
    });
    return server.on('secureConnection', (socket: TLSSocket) => {
      watch(socket);
      if (socket.alpnProtocol) route(socket, socket.alpnProtocol as Protocol);
      else routeByFirstBytes(socket);
    });
  }

  function watch(socket: Socket): void {
    socket.on('close', closed).on('error', logError);
  }

  function routeByFirstBytes(socket: Socket): void {
    undetected.add(socket);
    detectProtocol(socket, limits.headersMs, (protocol) => {
      undetected.delete(socket);
      route(socket, protocol);
    });
  }

  function route(socket: Socket, protocol: Protocol): void {
    if (stopped) {
      socket.destroy();
    } else if (protocol === 'http/1.1') {
      http.accept(socket);
    } else {
      // Half open, an HTTP/2 session would never end.
      socket.allowHalfOpen = false;
      grpc.accept(socket);
    }
  }

  function closed(this: Socket): void {
    open.delete(this);
    undetected.delete(this);
    if (open.size === 0) allClosed();
  }

  /** No more than a log line is needed: 'close' follows and cleans up. */
  function logError(error: Error): void {
    log.debug({ error: error.message }, 'connection failed');
  }

  async function finish(graceMs: number): Promise<void> {
    const closing = new Promise<void>((resolve) => {
      allClosed = resolve;
      if (open.size === 0) resolve();
    });
    for (const socket of undetected) socket.destroy();
    http.stop();
    const timer = setTimeout(() => {
      log.warn({ connections: open.size }, 'closing connections that did not finish in time');
      for (const socket of open) socket.destroy();
    }, graceMs);
    await grpc.stop(closing);
    clearTimeout(timer);
    clearInterval(unreadTimer);
  }

  return {
    accept,
    useCertificate: (pair) => secure?.setSecureContext(contextOptions(pair)),
    stop(graceMs = STOP_GRACE_MS) {
      stopped ??= finish(graceMs);
      return stopped;
    },
  };
}

const contextOptions = ({ cert, key }: TlsPair) => ({ cert, key, minVersion: 'TLSv1.2' }) as const;
