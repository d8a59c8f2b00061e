import {
  constants,
  type Http2Server,
  type Http2Session,
  type IncomingHttpHeaders,
  type ServerHttp2Stream,
} from 'node:http2';
import { ApiError, Code } from '../../base/errors.ts';
import type { MaybePromise } from '../../base/maybe-promise.ts';
import { createMemoryBudget, type MemoryBudget } from '../../base/memory-budget.ts';
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
  /** The rules of the method at a path such as `/package.Service/Method`; undefined if there is no such method. */
  readonly rulesOf: (path: string) => RequestRules | undefined;
  /** Throws the error to send if the caller cannot be authenticated. */
  readonly authenticate: (stream: ServerHttp2Stream, headers: IncomingHttpHeaders) => MaybePromise<unknown>;
  /** Sends an error. */
  readonly refuse: (stream: ServerHttp2Stream, headers: IncomingHttpHeaders, error: unknown) => void;
}

/** The memory of a stream in Node and grpc-js and of the bytes that arrive with its headers, roughly. */
const STREAM_BYTES = 16 * 1024;
/** The memory of the objects for a data frame, roughly. */
const FRAME_BYTES = 256;
/** The prefix of a gRPC message. */
const PREFIX_BYTES = 5;
/** How many times the size of a small request a stream of messages may have in total. */
const STREAM_FACTOR = 16;
const NO_RULES: RequestRules = { needsAuthentication: false, isStream: false };

type StreamListener = (
  stream: ServerHttp2Stream,
  headers: IncomingHttpHeaders,
  flags: number,
  rawHeaders: string[],
) => void;

/**
 * Limits what requests may take before their callers are authenticated. grpc-js reads a whole message before it calls
 * the handler, up to its limit of some megabytes for each stream, and waits for it without a deadline.
 *
 * Most requests arrive completely in one turn of the event loop and are not touched. What is still incomplete then is
 * counted. It is authenticated from its headers when it becomes large, or when its connection or all connections have
 * too many unauthenticated bytes; a compressed request at once. What cannot be authenticated is refused.
 */
export function guardRequests(server: Http2Server, options: RequestGuardOptions): { stop(): void } {
  const { limits, unauthenticated, rulesOf } = options;
  const connectionBudgets = new WeakMap<Http2Session, MemoryBudget>();
  const guarded = new Set<GuardedRequest>();
  let arrived: [ServerHttp2Stream, IncomingHttpHeaders, readonly string[]][] = [];

  const serve = server.listeners('stream') as StreamListener[];
  server.removeAllListeners('stream');
  server.on(
    'stream',
    (stream: ServerHttp2Stream, headers: IncomingHttpHeaders, flags: number, rawHeaders: string[]) => {
      // A request that was cancelled in the bytes it arrived in. grpc-js would respond to it, which ends the process.
      if (stream.destroyed || stream.closed) {
        stream.on('error', () => {});
        return;
      }
      if (isCompressed(headers)) {
        guard(stream, headers, rawHeaders);
        if (stream.closed) return;
      } else if (arrived.push([stream, headers, rawHeaders]) === 1) {
        setImmediate(guardIncomplete);
      }
      for (const listener of serve) listener(stream, headers, flags, rawHeaders);
    },
  );

  function guardIncomplete(): void {
    const streams = arrived;
    arrived = [];
    for (const [stream, headers, rawHeaders] of streams) {
      if (!stream.readableEnded && !stream.closed && !stream.destroyed) guard(stream, headers, rawHeaders);
    }
  }

  function guard(stream: ServerHttp2Stream, headers: IncomingHttpHeaders, rawHeaders: readonly string[]): void {
    const { session } = stream;
    if (session === undefined) return;
    let budget = connectionBudgets.get(session);
    if (budget === undefined) {
      budget = createMemoryBudget(limits.unauthenticatedConnectionBytes);
      connectionBudgets.set(session, budget);
    }
    const rules = rulesOf(headers[':path'] ?? '') ?? NO_RULES;
    const request = new GuardedRequest(stream, headers, rules, [budget, unauthenticated], options);
    guarded.add(request);
    stream.on('data', (chunk: Buffer) => request.receive(chunk));
    stream.once('close', () => {
      guarded.delete(request);
      request.release();
    });
    let bytes = STREAM_BYTES;
    for (const text of rawHeaders) bytes += text.length;
    request.charge(bytes);
    if (isCompressed(headers)) request.expectCompressed();
  }

  const checkDeadlines = (): void => {
    const now = performance.now();
    for (const request of guarded) request.checkDeadline(now);
  };
  const timer = setInterval(checkDeadlines, Math.min(1_000, Math.ceil(limits.publicRequestMs / 4))).unref();
  return { stop: () => clearInterval(timer) };
}

const isCompressed = ({ 'grpc-encoding': encoding }: IncomingHttpHeaders): boolean =>
  encoding !== undefined && encoding !== 'identity';

/** A request that is compressed or arrives in parts. */
class GuardedRequest {
  readonly #stream: ServerHttp2Stream;
  readonly #headers: IncomingHttpHeaders;
  readonly #rules: RequestRules;
  readonly #budgets: readonly MemoryBudget[];
  readonly #options: RequestGuardOptions;
  readonly #since = performance.now();
  #received = 0;
  /** The memory that the received bytes take. */
  #kept = 0;
  /** What is counted in the budgets. */
  #charged = 0;
  #lastBuffer: ArrayBufferLike | undefined;
  #state: 'unauthenticated' | 'authenticating' | 'authenticated' | 'refused' = 'unauthenticated';

  constructor(
    stream: ServerHttp2Stream,
    headers: IncomingHttpHeaders,
    rules: RequestRules,
    budgets: readonly MemoryBudget[],
    options: RequestGuardOptions,
  ) {
    this.#stream = stream;
    this.#headers = headers;
    this.#rules = rules;
    this.#budgets = budgets;
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

  /** grpc-js decompresses a message up to its limit. */
  expectCompressed(): void {
    this.charge(this.#options.maxMessageBytes);
    if (this.#rules.needsAuthentication) this.#authenticate(serverBusy);
  }

  receive(chunk: Buffer): void {
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
    if (this.#stream.readableEnded) return;
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
    // Stops the flow-control window of the stream.
    this.#stream.pause();
    result.then(
      () => {
        this.#authenticated();
        this.#stream.resume();
      },
      (thrown: unknown) => this.#refuse(thrown),
    );
  }

  #authenticated(): void {
    this.#state = 'authenticated';
    this.release();
  }

  #refuse(error: unknown): void {
    this.#state = 'refused';
    this.release();
    const stream = this.#stream;
    if (stream.destroyed || stream.closed) return;
    if (!stream.headersSent) this.#options.refuse(stream, this.#headers, error);
    // The error is complete, and the client should not send the rest: RFC 9113 section 8.1.
    stream.close(constants.NGHTTP2_NO_ERROR);
  }
}

export const messageTooLarge = (limit: number): ApiError =>
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
