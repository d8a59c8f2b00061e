import { constants, type Http2Session, type IncomingHttpHeaders, type ServerHttp2Stream } from 'node:http2';
import { ApiError, Code } from '../../base/errors.ts';
import type { MaybePromise } from '../../base/maybe-promise.ts';
import { createMemoryBudget, type MemoryBudget } from '../../base/memory-budget.ts';
import type { ServeStream } from '../http2/http2-server.ts';
import type { Limits } from '../limits.ts';

/** What a method accepts. */
export interface RequestRules {
  /** Whether the caller must be authenticated. If not, requests are small. */
  readonly needsAuthentication: boolean;
  /** Whether a request may have any number of messages, with pauses between them. */
  readonly isStream: boolean;
}

export interface RequestGuardOptions {
  readonly limits: Pick<
    Limits,
    'publicRequestBytes' | 'publicRequestMs' | 'requestMs' | 'unauthenticatedConnectionBytes'
  >;
  readonly unauthenticated: MemoryBudget;
  readonly maxMessageBytes: number;
  /** The rules for a path such as `/package.Service/Method`. */
  readonly rulesOf: (path: string) => RequestRules;
  /** Throws the error to send if the caller cannot be authenticated. */
  readonly authenticate: (stream: ServerHttp2Stream, headers: IncomingHttpHeaders) => MaybePromise<unknown>;
  /** Sends an error. */
  readonly refuse: (stream: ServerHttp2Stream, headers: IncomingHttpHeaders, error: unknown) => void;
}

/** The memory of a stream in Node and grpc-js and of the bytes that arrive with its headers, roughly. */
const STREAM_BYTES = 16 * 1024;
/** The flow-control window of a stream: the default of HTTP/2. */
const WINDOW_BYTES = 64 * 1024;
/** The memory of the objects for a data frame, roughly. */
const FRAME_BYTES = 256;
/** The prefix of a gRPC message. */
const PREFIX_BYTES = 5;
/** How many times the size of a small request a stream of messages may have in total. */
const STREAM_FACTOR = 16;
/**
 * Compressed requests without authentication that a connection may send at once, and the time between further ones.
 * Decompression creates garbage faster than V8 collects it.
 */
const COMPRESSED_BURST = 20;
const COMPRESSED_INTERVAL_MS = 50;
/**
 * After so many refusals, further ones of the connection are delayed. A client that repeats refused requests would use
 * all of the processor.
 */
const IMMEDIATE_REFUSALS = 20;
const REFUSAL_DELAY_MS = 1_000;

interface Connection {
  readonly budget: MemoryBudget;
  refusals: number;
  /** When the next compressed request without authentication would be admitted at a steady rate. */
  nextCompressedMs: number;
}

export interface RequestGuard {
  /** Serves a request within the limits. */
  readonly serve: ServeStream;
  stop(): void;
}

/**
 * Limits what requests may take before their callers are authenticated. grpc-js reads a whole message before it calls
 * the handler, up to its limit of some megabytes for each stream, and waits for it without a deadline.
 *
 * Most requests arrive completely in one turn of the event loop and are not touched. What is still incomplete then is
 * counted. It is authenticated from its headers when it becomes large, or when its connection or all connections have
 * too many unauthenticated bytes; a compressed request at once. What cannot be authenticated is refused.
 *
 * Requests are passed to `serve`, and those of methods that need no authentication to `servePublic`, which takes only
 * small messages.
 */
export function guardRequests(
  serve: ServeStream,
  servePublic: ServeStream,
  options: RequestGuardOptions,
): RequestGuard {
  const { limits, rulesOf } = options;
  const connections = new WeakMap<Http2Session, Connection>();
  const guarded = new Set<GuardedRequest>();
  let arrived: [ServerHttp2Stream, IncomingHttpHeaders, readonly string[]][] = [];

  const admit: ServeStream = (stream, headers, flags, rawHeaders) => {
    // A request that was cancelled in the bytes it arrived in. grpc-js would respond to it, which ends the process.
    if (stream.destroyed || stream.closed) {
      stream.on('error', ignoreError);
      return;
    }
    const { needsAuthentication } = rulesOf(headers[':path'] ?? '');
    const serveStream = (): void => (needsAuthentication ? serve : servePublic)(stream, headers, flags, rawHeaders);
    if (isCompressed(headers)) {
      guard(stream, headers, rawHeaders)?.admitCompressed(serveStream);
      return;
    }
    if (arrived.push([stream, headers, rawHeaders]) === 1) setImmediate(guardIncomplete);
    serveStream();
  };

  function guardIncomplete(): void {
    const streams = arrived;
    arrived = [];
    for (const [stream, headers, rawHeaders] of streams) {
      if (!stream.readableEnded && !stream.closed && !stream.destroyed) guard(stream, headers, rawHeaders)?.watch();
    }
  }

  function guard(
    stream: ServerHttp2Stream,
    headers: IncomingHttpHeaders,
    rawHeaders: readonly string[],
  ): GuardedRequest | undefined {
    const { session } = stream;
    if (session === undefined) return undefined;
    let connection = connections.get(session);
    if (connection === undefined) {
      connection = {
        budget: createMemoryBudget(limits.unauthenticatedConnectionBytes),
        refusals: 0,
        nextCompressedMs: 0,
      };
      connections.set(session, connection);
    }
    const rules = rulesOf(headers[':path'] ?? '');
    const request = new GuardedRequest(stream, headers, rules, connection, options);
    guarded.add(request);
    // grpc-js does not see a request that is refused at once, and an error without a listener ends the process.
    stream.on('error', ignoreError);
    stream.once('close', () => {
      guarded.delete(request);
      request.release();
    });
    let bytes = STREAM_BYTES;
    for (const text of rawHeaders) bytes += text.length;
    request.charge(bytes);
    return request;
  }

  const checkDeadlines = (): void => {
    const now = performance.now();
    for (const request of guarded) request.checkDeadline(now);
  };
  const timer = setInterval(checkDeadlines, Math.min(1_000, Math.ceil(limits.publicRequestMs / 4))).unref();
  return { serve: admit, stop: () => clearInterval(timer) };
}

const ignoreError = (): void => {};

const isCompressed = ({ 'grpc-encoding': encoding }: IncomingHttpHeaders): boolean =>
  encoding !== undefined && encoding !== 'identity';

/** A request that is compressed or arrives in parts. */
class GuardedRequest {
  readonly #stream: ServerHttp2Stream;
  readonly #headers: IncomingHttpHeaders;
  readonly #rules: RequestRules;
  readonly #connection: Connection;
  readonly #budgets: readonly MemoryBudget[];
  readonly #options: RequestGuardOptions;
  readonly #since = performance.now();
  #received = 0;
  /** The memory that the received bytes take. */
  #kept = 0;
  /** What is counted in the budgets. */
  #charged = 0;
  #lastBuffer: ArrayBufferLike | undefined;
  #onAuthenticated: (() => void) | undefined;
  #state: 'unauthenticated' | 'authenticating' | 'authenticated' | 'refused' = 'unauthenticated';

  constructor(
    stream: ServerHttp2Stream,
    headers: IncomingHttpHeaders,
    rules: RequestRules,
    connection: Connection,
    options: RequestGuardOptions,
  ) {
    this.#stream = stream;
    this.#headers = headers;
    this.#rules = rules;
    this.#connection = connection;
    this.#budgets = [connection.budget, options.unauthenticated];
    this.#options = options;
  }

  /** Counts bytes until the caller is authenticated or the stream closes. */
  charge(bytes: number): void {
    if (this.#state === 'authenticated' || this.#state === 'refused') return;
    this.#charged += bytes;
    let isExceeded = false;
    for (const budget of this.#budgets) {
      budget.charge(bytes);
      isExceeded ||= budget.isExceeded;
    }
    if (isExceeded) this.#authenticate(serverBusy);
  }

  release(): void {
    for (const budget of this.#budgets) budget.release(this.#charged);
    this.#charged = 0;
  }

  /** Counts the data of the request as it arrives. */
  watch(): void {
    if (this.#state !== 'refused') this.#stream.on('data', (chunk: Buffer) => this.#receive(chunk));
  }

  /** Passes the request on when its caller is authenticated, because grpc-js decompresses a message up to its limit. */
  admitCompressed(serve: () => void): void {
    this.#onAuthenticated = () => {
      if (this.#stream.destroyed) return;
      this.watch();
      serve();
    };
    const { needsAuthentication } = this.#rules;
    const { maxMessageBytes, limits } = this.#options;
    // zlib takes about as much as the small messages that methods without authentication accept.
    this.charge(needsAuthentication ? maxMessageBytes : 2 * limits.publicRequestBytes);
    if (needsAuthentication) this.#authenticate(serverBusy);
    else if (this.#state !== 'refused') this.#admitInTurn(this.#onAuthenticated);
  }

  #admitInTurn(admit: () => void): void {
    const now = performance.now();
    const earliest = now - COMPRESSED_BURST * COMPRESSED_INTERVAL_MS;
    const next = Math.max(this.#connection.nextCompressedMs, earliest) + COMPRESSED_INTERVAL_MS;
    this.#connection.nextCompressedMs = next;
    if (next <= now) {
      admit();
      return;
    }
    this.#hold();
    setTimeout(() => {
      if (this.#state !== 'refused') admit();
    }, next - now).unref();
  }

  #receive(chunk: Buffer): void {
    if (this.#state === 'refused') return;
    const { limits, maxMessageBytes } = this.#options;
    const { isStream } = this.#rules;
    this.#received += chunk.length;
    // A frame keeps the whole buffer that was read from the socket in memory, however small it is.
    const isNewBuffer = chunk.buffer !== this.#lastBuffer;
    this.#lastBuffer = chunk.buffer;
    const bytes = FRAME_BYTES + (isNewBuffer ? chunk.buffer.byteLength : 0);
    this.#kept += bytes;
    if (this.#kept > 3 * maxMessageBytes) {
      this.#refuse(framesTooSmall);
      return;
    }
    // The messages of a stream are handled as they arrive.
    if (!isStream) this.charge(bytes);
    const limit = limits.publicRequestBytes * (isStream ? STREAM_FACTOR : 1);
    if (this.#received > limit + PREFIX_BYTES) this.#authenticate(messageTooLarge(limit));
  }

  /** Ends a request whose rest does not arrive. */
  checkDeadline(now: number): void {
    const { publicRequestMs, requestMs } = this.#options.limits;
    if (this.#stream.readableEnded || this.#state === 'authenticating' || this.#state === 'refused') return;
    const limitMs = this.#state === 'authenticated' || this.#rules.isStream ? requestMs : publicRequestMs;
    if (now - this.#since >= limitMs) this.#refuse(tooSlow);
  }

  /** Authenticates the caller. A method that has no callers is refused with `error`. */
  #authenticate(error: ApiError): void {
    if (this.#state !== 'unauthenticated') return;
    if (!this.#rules.needsAuthentication) {
      this.#refuse(error);
      return;
    }
    this.#state = 'authenticating';
    let result: MaybePromise<unknown>;
    try {
      result = this.#options.authenticate(this.#stream, this.#headers);
    } catch (thrown) {
      this.#refuse(thrown);
      return;
    }
    if (!(result instanceof Promise)) {
      this.#authenticated();
      return;
    }
    this.#hold();
    result.then(
      () => this.#authenticated(),
      (thrown: unknown) => this.#refuse(thrown),
    );
  }

  /** Stops the flow-control window of the stream, of which Node still buffers the rest. */
  #hold(): void {
    this.charge(WINDOW_BYTES);
    // Nothing reads a compressed request yet.
    if (this.#onAuthenticated === undefined) this.#stream.pause();
  }

  #authenticated(): void {
    this.#state = 'authenticated';
    this.#connection.refusals = 0;
    this.release();
    if (this.#onAuthenticated === undefined) this.#stream.resume();
    else this.#onAuthenticated();
  }

  #refuse(error: unknown): void {
    if (this.#state === 'refused') return;
    this.#state = 'refused';
    this.release();
    // The rest of the request is dropped, and grpc-js does not buffer it.
    this.#stream.removeAllListeners('data').resume();
    this.#connection.refusals++;
    if (this.#connection.refusals <= IMMEDIATE_REFUSALS) this.#sendRefusal(error);
    else afterDelay(() => this.#sendRefusal(error));
  }

  #sendRefusal(error: unknown): void {
    const stream = this.#stream;
    if (stream.destroyed || stream.closed) return;
    if (!stream.headersSent) this.#options.refuse(stream, this.#headers, error);
    // The error is complete, and the client should not send the rest: RFC 9113 section 8.1.
    stream.close(constants.NGHTTP2_NO_ERROR);
  }
}

/** Calls a function after a random time, so that delayed requests do not come back all at once. */
const afterDelay = (run: () => void): void => {
  setTimeout(run, REFUSAL_DELAY_MS * (1 + Math.random())).unref();
};

const messageTooLarge = (limit: number): ApiError =>
  new ApiError(
    Code.RESOURCE_EXHAUSTED,
    `Resource exhausted: the message of a method that needs no token must not exceed ${limit} bytes`,
  );

const framesTooSmall = new ApiError(
  Code.RESOURCE_EXHAUSTED,
  'Resource exhausted: the message arrives in too many small frames; send larger frames',
);

const tooSlow = new ApiError(Code.DEADLINE_EXCEEDED, 'Deadline exceeded: the request took too long to arrive');

const serverBusy = new ApiError(
  Code.RESOURCE_EXHAUSTED,
  'Resource exhausted: the server is receiving too many requests that are not authenticated; try again later',
);
