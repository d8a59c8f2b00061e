import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { createServer as createTlsServer, type TLSSocket, type Server as TlsServer } from 'node:tls';
import type { Log } from '../base/log.ts';
import { createMemoryBudget, type MemoryBudget } from '../base/memory-budget.ts';
import { REQUESTS_STOP_MS } from '../base/stop-grace.ts';
import type { BodyTimeout } from './body-timeout.ts';
import { createConnectionCounter } from './connection-counter.ts';
import type { GrpcServer } from './grpc/grpc.ts';
import { createHttpServer } from './http-server.ts';
import { loadHttp2OnFirstUse } from './http2/load-on-first-use.ts';
import { defaultLimits, type Limits } from './limits.ts';
import { detectProtocol, type Protocol } from './protocol-detection.ts';
import type { TlsPair } from './tls-files.ts';
import { closeUnreadConnections } from './unread-connections.ts';

/** How long a client may take to read the error that its request got at the end of the grace. */
const REFUSED_MS = 500;

export interface ProtocolRouterOptions {
  readonly http: (req: IncomingMessage, res: ServerResponse, bodyTimeout: BodyTimeout) => void;
  readonly grpc: GrpcServer;
  /** The age at which an HTTP/2 connection is closed. */
  readonly maxConnectionMs?: number;
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
  /** Serves on, also new connections, but asks clients to close theirs: `Connection: close` and GOAWAY. */
  drain(): void;
  /** Closes all connections when their requests are answered. No further connection may be passed to `accept`. */
  stop(options?: RouterStopOptions): Promise<void>;
}

export interface RouterStopOptions {
  /** How long connections on which no request is running stay open, for requests that are just arriving. */
  readonly idleMs?: number;
  /** How long running requests may take. After it they are answered with an error. */
  readonly graceMs?: number;
}

/** Serves HTTP/1.1 and HTTP/2 on the connections of one port. Requests over HTTP/2 that are gRPC are passed to `grpc`. */
export function createProtocolRouter(options: ProtocolRouterOptions): ProtocolRouter {
  const { grpc, tls, hstsSeconds = 0, limits = defaultLimits, serviceDomain, newRequestId, log } = options;
  const { unauthenticated = createMemoryBudget(limits.unauthenticatedBytes) } = options;
  const common = {
    handle: options.http,
    limits,
    unauthenticated,
    serviceDomain,
    newRequestId,
    hstsSeconds: tls ? hstsSeconds : 0,
  };
  const http = createHttpServer(common);
  const { maxConnectionMs } = options;
  const http2 = loadHttp2OnFirstUse({
    ...common,
    serveGrpc: grpc.serve,
    ...(maxConnectionMs !== undefined && { maxConnectionMs }),
    log,
  });
  /** All open connections, including those in a TLS handshake. */
  const open = new Set<Socket>();
  const counter = createConnectionCounter(limits, log);
  const unreadTimer = closeUnreadConnections(open, limits.unreadMs, log);
  /** Connections whose protocol is not detected yet. */
  const undetected = new Set<Socket>();
  /** Connections in a TLS handshake, by address and port: Node does not say which connection a TLS socket is for. */
  const handshaking = new Map<string, Socket>();
  let stopped: Promise<void> | undefined;
  let isClosing = false;
  let allClosed = (): void => {};

  const secure = tls && createTls(tls);

  function accept(socket: Socket): void {
    if (!counter.admit(socket)) {
      socket.destroy();
      return;
    }
    open.add(socket);
    watch(socket);
    if (!secure) {
      routeByFirstBytes(socket);
      return;
    }
    const client = clientOf(socket);
    handshaking.set(client, socket);
    socket.once('close', () => handshaking.delete(client));
    secure.emit('connection', socket);
  }

  /** Only for handshakes: it does not listen itself. */
  function createTls(pair: TlsPair): TlsServer {
    const server = createTlsServer({
      ...contextOptions(pair),
      handshakeTimeout: limits.headersMs,
      allowHalfOpen: true,
      noDelay: true,
      // Uploads over HTTP/2 take twice the CPU time, so clients that offer both get HTTP/1.1. gRPC clients offer only h2.
      ALPNCallback: ({ protocols }) => ['http/1.1', 'h2'].find((protocol) => protocols.includes(protocol)),
    });
    server.on('tlsClientError', (error, socket) => {
      log.debug({ error: error.message }, 'TLS handshake failed');
      // After a timeout Node reports the error but leaves the connection open.
      socket.destroy();
    });
    return server.on('secureConnection', (socket: TLSSocket) => {
      handshaking.delete(clientOf(socket));
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
    if (isClosing) {
      socket.destroy();
    } else if (protocol === 'http/1.1') {
      http.accept(socket);
    } else {
      // Half open, an HTTP/2 session would never end.
      socket.allowHalfOpen = false;
      http2.accept(socket);
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

  function drain(): void {
    http.drain();
    http2.drain();
    grpc.drain();
  }

  async function finish({ idleMs = 0, graceMs = REQUESTS_STOP_MS }: RouterStopOptions): Promise<void> {
    const closing = new Promise<void>((resolve) => {
      allClosed = resolve;
      if (open.size === 0) resolve();
    });
    drain();
    if (idleMs > 0) await withTimeout(closing, idleMs);
    isClosing = true;
    for (const socket of [...undetected, ...handshaking.values()]) socket.destroy();
    http.close();
    http2.close();
    let timer = setTimeout(() => {
      if (open.size > 0) log.warn({ connections: open.size }, 'closing connections that did not finish in time');
      http.refuseRunning();
      http2.refuseRunning();
      timer = setTimeout(() => {
        for (const socket of open) socket.destroy();
      }, REFUSED_MS);
    }, graceMs);
    await grpc.stop(closing);
    clearTimeout(timer);
    clearInterval(unreadTimer);
  }

  return {
    accept,
    useCertificate: (pair) => secure?.setSecureContext(contextOptions(pair)),
    drain,
    stop(options = {}) {
      stopped ??= finish(options);
      return stopped;
    },
  };
}

const contextOptions = ({ cert, key }: TlsPair) => ({ cert, key, minVersion: 'TLSv1.2' }) as const;

const clientOf = ({ remoteAddress, remotePort }: Socket): string => `${remoteAddress} ${remotePort}`;

/** Resolves when `promise` does, or after `ms`. */
function withTimeout(promise: Promise<void>, ms: number): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, ms);
    void promise.then(() => {
      clearTimeout(timer);
      resolve();
    });
  });
}
