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
import { createMessageFollower, type MessageFollower } from './message-follower.ts';

/** What a method accepts. */
export interface RequestRules {
  /** Whether the caller must be authenticated. If not, messages are small. */
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

/** The memory of Node and grpc-js for a stream, roughly. */
const STREAM_BYTES = 8 * 1024;
/** The memory of the objects for a data frame, roughly. */
const FRAME_BYTES = 256;
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
 * Small requests are only counted. A request is authenticated from its headers before it is read if its message is
 * large or compressed, or if its connection or all connections have too many unauthenticated bytes. What cannot be
 * authenticated is refused.
 */
export function guardRequests(server: Http2Server, options: RequestGuardOptions): { stop(): void } {
  const { limits, unauthenticated, rulesOf } = options;
  const connectionBudgets = new WeakMap<Http2Session, MemoryBudget>();
  const open = new Set<GuardedRequest>();

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
      // First, so that grpc-js does not buffer bytes that are refused.
      guard(stream, headers, rawHeaders);
      if (stream.closed) return;
      for (const listener of serve) listener(stream, headers, flags, rawHeaders);
    },
  );

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
    open.add(request);
    stream.on('data', (chunk: Buffer) => request.receive(chunk));
    stream.once('close', () => {
      open.delete(request);
      request.release();
    });
    let headerBytes = 0;
    for (const text of rawHeaders) headerBytes += text.length;
    request.charge(STREAM_BYTES + headerBytes);
  }

  const checkDeadlines = (): void => {
    const now = performance.now();
    for (const request of open) request.checkDeadline(now);
  };
  const timer = setInterval(checkDeadlines, Math.min(1_000, Math.ceil(limits.publicRequestMs / 4))).unref();
  return { stop: () => clearInterval(timer) };
}

/** A request from its headers until its stream closes. */
class GuardedRequest {
  readonly #stream: ServerHttp2Stream;
  readonly #headers: IncomingHttpHeaders;
  readonly #rules: RequestRules;
  readonly #budgets: readonly MemoryBudget[];
  readonly #options: RequestGuardOptions;
  readonly #messages: MessageFollower = createMessageFollower();
  #since = performance.now();
  #unreadSince: number | undefined;
  /** What is counted in the budgets. */
  #charged = 0;
  /** The part of it that is for the current message. */
  #messageBytes = 0;
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
    if (isExceeded) this.#authenticate();
  }

  release(): void {
    for (const budget of this.#budgets) budget.release(this.#charged);
    this.#charged = 0;
  }

  receive(chunk: Buffer): void {
    if (this.#state === 'refused') return;
    const { publicRequestBytes } = this.#options.limits;
    const { maxMessageBytes } = this.#options;
    const started = this.#messages.receive(chunk);
    if (started !== undefined && started.length > publicRequestBytes && started.length <= maxMessageBytes) {
      if (!this.#rules.needsAuthentication) {
        this.#refuse(messageTooLarge(publicRequestBytes));
        return;
      }
      this.#authenticate();
    } else if (started?.isCompressed) {
      // grpc-js decompresses up to its limit.
      this.#keep(maxMessageBytes);
      if (this.#rules.needsAuthentication) this.#authenticate();
    }
    if (this.#messages.isComplete) {
      // grpc-js has copied the message and dropped the frames.
      if (this.#rules.isStream) this.#since = performance.now();
      this.#lastBuffer = undefined;
      if (this.#messageBytes === 0) this.#keep(chunk.length);
      else if (this.#rules.isStream) this.#dropMessage();
      return;
    }
    // A frame keeps the whole buffer that was read from the socket in memory, however small it is.
    const isNewBuffer = chunk.buffer !== this.#lastBuffer;
    this.#lastBuffer = chunk.buffer;
    this.#keep(FRAME_BYTES + (isNewBuffer ? chunk.buffer.byteLength : 0));
    if (this.#messageBytes > 3 * maxMessageBytes) this.#refuse(framesTooSmall);
  }

  #keep(bytes: number): void {
    this.#messageBytes += bytes;
    this.charge(bytes);
  }

  #dropMessage(): void {
    const bytes = Math.min(this.#messageBytes, this.#charged);
    this.#messageBytes = 0;
    this.#charged -= bytes;
    for (const budget of this.#budgets) budget.release(bytes);
  }

  /** Ends a request whose rest does not arrive, or whose response is not read. */
  checkDeadline(now: number): void {
    const { publicRequestMs, requestMs } = this.#options.limits;
    const stream = this.#stream;
    if (stream.writableLength === 0) this.#unreadSince = undefined;
    else this.#unreadSince ??= now;
    if (this.#unreadSince !== undefined && now - this.#unreadSince >= requestMs) {
      stream.close(constants.NGHTTP2_CANCEL);
    } else if (this.#state === 'refused') {
      stream.close(constants.NGHTTP2_NO_ERROR);
    } else if (!stream.readableEnded) {
      const isIdleStream = this.#rules.isStream && this.#messages.isComplete;
      const limitMs = this.#state === 'authenticated' || isIdleStream ? requestMs : publicRequestMs;
      if (now - this.#since >= limitMs) this.#refuse(tooSlow);
    }
  }

  #authenticate(): void {
    if (this.#state !== 'unauthenticated') return;
    if (!this.#rules.needsAuthentication) {
      this.#refuse(serverBusy);
      return;
    }
    this.#state = 'authenticating';
    let result: MaybePromise<unknown>;
    try {
      result = this.#options.authenticate(this.#stream, this.#headers);
    } catch (error) {
      this.#refuse(error);
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
      (error: unknown) => this.#refuse(error),
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
