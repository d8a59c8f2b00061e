import type { IncomingMessage, ServerResponse } from 'node:http';
import {
  constants,
  type IncomingHttpHeaders,
  performServerHandshake,
  type ServerHttp2Session,
  type ServerHttp2Stream,
} from 'node:http2';
import type { Socket } from 'node:net';
import { bodyLengthOf } from '../../base/body-length.ts';
import type { Log } from '../../base/log.ts';
import { createMemoryBudget, type MemoryBudget } from '../../base/memory-budget.ts';
import { type BodyTimeout, startBodyTimeout } from '../body-timeout.ts';
import type { Limits } from '../limits.ts';
import {
  REFUSED_BUSY,
  REFUSED_NO_HOST,
  REFUSED_STOPPING,
  REFUSED_TOO_SLOW,
  type Refusal,
  refusalResponse,
  takesHsts,
} from '../refusals.ts';
import { Http2Request } from './request.ts';
import { Http2Response } from './response.ts';

export type ServeStream = (
  stream: ServerHttp2Stream,
  headers: IncomingHttpHeaders,
  flags: number,
  rawHeaders: string[],
) => void;

export interface Http2ServerOptions {
  /** Serves requests that are not gRPC. */
  readonly handle: (req: IncomingMessage, res: ServerResponse, bodyTimeout: BodyTimeout) => void;
  /** Serves gRPC requests. */
  readonly serveGrpc: ServeStream;
  readonly limits: Limits;
  readonly unauthenticated: MemoryBudget;
  readonly serviceDomain: string;
  readonly newRequestId: () => string;
  readonly hstsSeconds: number;
  /** The age at which a connection is closed, so that even a gRPC request that never ends is closed at last. */
  readonly maxConnectionMs?: number;
  readonly log: Log;
}

export interface Http2Server {
  /** Serves HTTP/2 on an accepted connection. */
  accept(socket: Socket): void;
  /** Announces the end of all connections that exist now (GOAWAY). Clients open another one for new requests. */
  drain(): void;
  /** Refuses new requests, and closes each connection after its running requests. */
  close(): void;
  /** Responds with an error to each request that is still running, except gRPC. */
  refuseRunning(): void;
}

const MAX_STREAM_ID = 2 ** 31 - 1;
/** Each stream may buffer an incomplete request. */
const MAX_CONCURRENT_STREAMS = 100;
/** The flow-control window of a stream: the default of HTTP/2. A client may send so much that nothing reads yet. */
const WINDOW_BYTES = 64 * 1024;
/**
 * The windows of a connection on which an authenticated client uploads to the registry. With the default, a client that
 * is 20 ms away could send 3 MB/s.
 */
const UPLOAD_WINDOW_BYTES = 1024 * 1024;
const UPLOAD_CONNECTION_WINDOW_BYTES = 4 * 1024 * 1024;
/** The memory of a stream, its request and its response in Node, roughly. */
const STREAM_BYTES = 8 * 1024;

/** `application/grpc`, `application/grpc+proto`, but not `application/grpc-web`. */
const GRPC_TYPE = /^application\/grpc(?=[+; \t]|$)/i;

interface Connection {
  readonly session: ServerHttp2Session;
  readonly socket: Socket;
  /** Requests whose bodies nothing reads yet. */
  readonly unread: MemoryBudget;
  /** The open streams. Those of gRPC have no response here. */
  readonly streams: Map<ServerHttp2Stream, Http2Response | undefined>;
  readonly closesAt: number;
  idleSince: number;
  /** Whether the client knows that it should open another connection. */
  isAnnounced: boolean;
  hasUploadWindow: boolean;
}

/** An HTTP/2 server that does not listen: the connections are passed to `accept`. */
export function createHttp2Server(options: Http2ServerOptions): Http2Server {
  const { handle, serveGrpc, limits, unauthenticated, hstsSeconds, log } = options;
  const { maxConnectionMs = 3_600_000 } = options;
  const connections = new Set<Connection>();
  let isClosing = false;
  const timer = setInterval(checkAges, Math.ceil(maxConnectionMs / 720)).unref();

  function accept(socket: Socket): void {
    const session = performServerHandshake(socket, {
      settings: { maxConcurrentStreams: MAX_CONCURRENT_STREAMS, maxHeaderListSize: limits.headerBytes },
      // The limits above bound it. When Node's own limit is reached, it resets streams at random.
      maxSessionMemory: Number.MAX_SAFE_INTEGER,
      maxSendHeaderBlockLength: Number.MAX_SAFE_INTEGER,
    });
    const now = performance.now();
    const connection: Connection = {
      session,
      socket,
      unread: createMemoryBudget(limits.unauthenticatedConnectionBytes),
      streams: new Map(),
      // Connections that were opened at the same time do not end at the same time.
      closesAt: now + maxConnectionMs * (0.9 + Math.random() / 5),
      idleSince: now,
      isAnnounced: false,
      hasUploadWindow: false,
    };
    connections.add(connection);
    session.on('error', (error: Error) => log.debug({ error: error.message }, 'HTTP/2 connection failed'));
    session.once('close', () => {
      connections.delete(connection);
      if (isClosing && connections.size === 0) clearInterval(timer);
    });
    session.on('stream', (stream, headers, flags, rawHeaders) => {
      const isGrpc = GRPC_TYPE.test(headers['content-type'] ?? '');
      const response = isGrpc ? undefined : new Http2Response(stream, limits.unreadMs);
      connection.streams.set(stream, response);
      stream.on('error', ignoreError);
      stream.once('close', () => {
        connection.streams.delete(stream);
        if (connection.streams.size === 0) connection.idleSince = performance.now();
      });
      if (response) serve(connection, stream, headers, response);
      else serveGrpc(stream, headers, flags, rawHeaders as unknown as string[]);
    });
  }

  function serve(
    connection: Connection,
    stream: ServerHttp2Stream,
    headers: IncomingHttpHeaders,
    response: Http2Response,
  ): void {
    // A request that was cancelled in the bytes it arrived in.
    if (stream.destroyed || stream.closed) return;
    const release = chargeUnread(connection, stream, headers);
    const request = new Http2Request(stream, headers, connection.socket, release);
    const { host } = request.headers;
    if (hstsSeconds > 0 && takesHsts(host)) {
      response.setHeader('strict-transport-security', `max-age=${hstsSeconds}`);
    }
    if (host === undefined) {
      refuse(response, REFUSED_NO_HOST);
    } else if (connection.unread.isExceeded || unauthenticated.isExceeded) {
      refuse(response, REFUSED_BUSY);
    } else {
      if (headers.expect?.toLowerCase() === '100-continue') stream.additionalHeaders({ ':status': 100 });
      // Handlers use only what both classes have.
      const req = request as unknown as IncomingMessage;
      const timeout = startBodyTimeout(req, limits.requestMs, () => refuse(response, REFUSED_TOO_SLOW));
      handle(req, response as unknown as ServerResponse, withUploadWindow(connection, timeout));
    }
  }

  /** Counts the bytes that a client may send before its request is read. Returns what is called when it is read. */
  function chargeUnread({ unread }: Connection, stream: ServerHttp2Stream, headers: IncomingHttpHeaders): () => void {
    const length = bodyLengthOf({ headers, stream });
    if (length === 0) return () => {};
    let charged = STREAM_BYTES + Math.min(length ?? WINDOW_BYTES, WINDOW_BYTES);
    const budgets = [unread, unauthenticated];
    for (const budget of budgets) budget.charge(charged);
    const release = (): void => {
      for (const budget of budgets) budget.release(charged);
      charged = 0;
    };
    stream.once('close', release);
    return release;
  }

  /** Only the body of an upload takes longer than the timeout, and its sender is authenticated. */
  function withUploadWindow(connection: Connection, timeout: BodyTimeout): BodyTimeout {
    return {
      ...timeout,
      suspend() {
        timeout.suspend();
        const { session, hasUploadWindow } = connection;
        if (hasUploadWindow || session.closed || session.destroyed) return;
        connection.hasUploadWindow = true;
        session.settings({ initialWindowSize: UPLOAD_WINDOW_BYTES });
        session.setLocalWindowSize(UPLOAD_CONNECTION_WINDOW_BYTES);
      },
    };
  }

  function refuse(response: Http2Response, refusal: Refusal): void {
    if (response.headersSent) {
      response.destroy();
      return;
    }
    const { body, headers } = refusalResponse(refusal, options);
    response.writeHead(refusal.status, headers).end(body);
  }

  function announceClose(connection: Connection): void {
    const { session } = connection;
    if (connection.isAnnounced || session.destroyed) return;
    connection.isAnnounced = true;
    // With the highest id, streams that the client opens before it has read the frame are served: RFC 9113 section 6.8.
    session.goaway(constants.NGHTTP2_NO_ERROR, MAX_STREAM_ID);
  }

  /** Ends connections that are idle or old. */
  function checkAges(): void {
    const now = performance.now();
    for (const connection of connections) {
      const { session, streams, idleSince, closesAt } = connection;
      const isIdle = streams.size === 0 && now - idleSince >= maxConnectionMs / 12;
      if (connection.isAnnounced && (isIdle || now >= closesAt)) session.close();
      else if (isIdle || now >= closesAt) announceClose(connection);
      if (now < closesAt + maxConnectionMs / 60) continue;
      // Other requests have timeouts of their own.
      for (const [stream, response] of streams) if (!response) stream.destroy(new Error('the connection is too old'));
    }
  }

  return {
    accept,
    drain() {
      for (const connection of connections) announceClose(connection);
    },
    close() {
      isClosing = true;
      for (const connection of connections) {
        announceClose(connection);
        connection.session.close();
      }
      if (connections.size === 0) clearInterval(timer);
    },
    refuseRunning() {
      for (const { streams } of connections) {
        for (const response of streams.values()) if (response) refuse(response, REFUSED_STOPPING);
      }
    },
  };
}

/** No more than the listener is needed: 'close' follows and cleans up. */
const ignoreError = (): void => {};
