import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import type { MemoryBudget } from '../base/memory-budget.ts';
import { createServer, STATUS_CODES } from '../base/node-http.ts';
import { type BodyTimeout, startBodyTimeout } from './body-timeout.ts';
import type { Limits } from './limits.ts';
import {
  headersTooLarge,
  REFUSED_MALFORMED,
  REFUSED_NO_HOST,
  REFUSED_STOPPING,
  REFUSED_TOO_SLOW,
  type Refusal,
  refusalResponse,
  takesHsts,
} from './refusals.ts';

const REQUEST_TIMEOUT = 'ERR_HTTP_REQUEST_TIMEOUT';
const requestTimeout = Object.assign(new Error('the request took too long to arrive'), { code: REQUEST_TIMEOUT });

const STOPPING = 'WHARF_STOPPING';
const stopping = Object.assign(new Error('the server stops'), { code: STOPPING });

/** How long a refused client may take to read the error: closing while it still sends would reset the connection. */
const LINGER_MS = 1_000;

/** The memory that Node takes for a parsed request and its response, roughly. */
const PARSED_REQUEST_BYTES = 4 * 1024;

/** A connection. Its requests are handled one after the other. */
interface Connection {
  /** The response that is not finished yet. */
  current: ServerResponse | undefined;
  /** Pipelined requests that wait for the current response. */
  readonly waiting: { readonly req: IncomingMessage; readonly res: ServerResponse }[];
}

export interface HttpServerOptions {
  readonly handle: (req: IncomingMessage, res: ServerResponse, bodyTimeout: BodyTimeout) => void;
  readonly limits: Limits;
  /** For requests that wait on their connection. */
  readonly unauthenticated: MemoryBudget;
  readonly serviceDomain: string;
  readonly newRequestId: () => string;
  /** The max-age of Strict-Transport-Security (RFC 6797). 0 for connections without TLS, and to send no such header. */
  readonly hstsSeconds?: number;
}

export interface HttpServer {
  /** Serves HTTP/1.1 on an accepted connection. */
  accept(socket: Socket): void;
  /** Ends each connection after its next response, which says so with `Connection: close`. */
  drain(): void;
  /** Closes idle connections at once, and each other connection after the requests that have arrived on it. */
  close(): void;
  /** Responds with an error to each request that is still running, and closes its connection. */
  refuseRunning(): void;
}

/** An HTTP/1.1 server that does not listen: the connections are passed to `accept`. */
export function createHttpServer(options: HttpServerOptions): HttpServer {
  const { handle, limits, unauthenticated, hstsSeconds = 0 } = options;
  const connections = new Map<Duplex, Connection>();
  let isDraining = false;
  let isClosing = false;

  const server = createServer(
    {
      maxHeaderSize: limits.headerBytes,
      headersTimeout: limits.headersMs,
      // Node has one limit for all requests. BodyTimeout can be suspended for a body of many gigabytes.
      requestTimeout: 0,
      keepAliveTimeout: limits.idleMs,
      connectionsCheckingInterval: Math.ceil(limits.headersMs / 10),
      // Node would respond to a missing Host header without a body.
      requireHostHeader: false,
    },
    (req, res) => {
      const connection = connections.get(req.socket);
      if (connection === undefined) return;
      if (connection.current === undefined && connection.waiting.length === 0) start(connection, req, res);
      else enqueue(connection, req, res);
    },
  );
  server.on('clientError', refuse);
  // Node starts to check timeouts on this event, which a server that does not listen never emits.
  server.emit('listening');

  function accept(socket: Socket): void {
    connections.set(socket, { current: undefined, waiting: [] });
    socket.on('close', closed);
    server.emit('connection', socket);
  }

  function closed(this: Socket): void {
    const connection = connections.get(this);
    connections.delete(this);
    if (connection) discardWaiting(connection);
  }

  function start(connection: Connection, req: IncomingMessage, res: ServerResponse): void {
    connection.current = res;
    res.on('close', finished);
    if (isDraining) announceClose(connection, res);
    if (hstsSeconds > 0 && takesHsts(req.headers.host)) {
      res.setHeader('strict-transport-security', `max-age=${hstsSeconds}`);
    }
    if (req.headers.host === undefined && req.httpVersion === '1.1') {
      const { body, headers } = refusalResponse(REFUSED_NO_HOST, options);
      res.writeHead(REFUSED_NO_HOST.status, { connection: 'close', ...headers }).end(body);
    } else {
      handle(
        req,
        res,
        startBodyTimeout(req, limits.requestMs, () => refuse(requestTimeout, req.socket)),
      );
    }
  }

  /** Node passes on all requests of the bytes it has read, even if the client takes no response. */
  function enqueue(connection: Connection, req: IncomingMessage, res: ServerResponse): void {
    const { socket } = req;
    if (socket.destroyed) return;
    if (connection.waiting.length >= limits.pipelinedRequests || unauthenticated.isExceeded) {
      // The client has to repeat the requests without a response: RFC 9112 section 9.3.2.
      ignoreFurtherRequests(socket);
      socket.pause().destroy();
      return;
    }
    unauthenticated.charge(PARSED_REQUEST_BYTES);
    connection.waiting.push({ req, res });
    socket.pause();
  }

  function startNext(connection: Connection): void {
    const next = connection.waiting.shift();
    if (next === undefined) return;
    unauthenticated.release(PARSED_REQUEST_BYTES);
    if (next.req.socket.destroyed) return;
    if (connection.waiting.length === 0) next.req.socket.resume();
    start(connection, next.req, next.res);
  }

  function discardWaiting({ waiting }: Connection): void {
    unauthenticated.release(waiting.length * PARSED_REQUEST_BYTES);
    waiting.length = 0;
  }

  /** Called when the socket has taken the last byte of a response. */
  function finished(this: ServerResponse): void {
    const { socket } = this.req;
    const connection = connections.get(socket);
    if (connection?.current !== this) return;
    connection.current = undefined;
    // Not at once, so that a long queue of one connection does not delay the others.
    if (connection.waiting.length > 0) setImmediate(startNext, connection);
    else if (isClosing) socket.destroySoon();
  }

  /** Responds to bytes that are not a valid request. */
  function refuse(error: NodeJS.ErrnoException, socket: Duplex): void {
    // Already refused: further bytes of the client are discarded.
    if (socket.writableEnded) return;
    if (!socket.writable || error.code === 'ECONNRESET' || connections.get(socket)?.current?.headersSent) {
      socket.destroy();
      return;
    }
    const refusal = refusalFor(error.code, limits);
    const { body, headers } = refusalResponse(refusal, options);
    const lines = Object.entries({ Date: new Date().toUTCString(), Connection: 'close', ...headers });
    socket.end(
      `HTTP/1.1 ${refusal.status} ${STATUS_CODES[refusal.status]}\r\n` +
        `${lines.map(([name, value]) => `${name}: ${value}\r\n`).join('')}\r\n${body}`,
    );
    setTimeout(() => socket.destroy(), LINGER_MS).unref();
  }

  /** Node closes the connection after a response with this header. Requests that have arrived behind it come first. */
  function announceClose({ waiting }: Connection, res: ServerResponse): void {
    if (waiting.length === 0 && !res.headersSent) res.setHeader('connection', 'close');
  }

  function drain(): void {
    isDraining = true;
    for (const connection of connections.values()) {
      if (connection.current) announceClose(connection, connection.current);
    }
  }

  function close(): void {
    isClosing = true;
    drain();
    for (const [socket, { current, waiting }] of connections) {
      if (current === undefined && waiting.length === 0) (socket as Socket).destroySoon();
    }
  }

  function refuseRunning(): void {
    for (const [socket, { current }] of connections) if (current) refuse(stopping, socket);
  }

  return { accept, drain, close, refuseRunning };
}

/**
 * Drops the other requests of the bytes that Node has read. There can be thousands, and when their connection closes,
 * Node creates an error with a stack trace for each.
 */
function ignoreFurtherRequests(socket: Socket): void {
  const { parser } = socket as Socket & { readonly parser?: { onIncoming: () => number } | null };
  if (parser) parser.onIncoming = () => 0;
}

function refusalFor(code: string | undefined, limits: Limits): Refusal {
  switch (code) {
    case 'HPE_HEADER_OVERFLOW':
      return headersTooLarge(limits);
    case REQUEST_TIMEOUT:
      return REFUSED_TOO_SLOW;
    case STOPPING:
      return REFUSED_STOPPING;
    default:
      return REFUSED_MALFORMED;
  }
}
