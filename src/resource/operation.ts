import type { DescMessage, DescMethodUnary, Message, MessageShape } from '@bufbuild/protobuf';
import type { MaybePromise } from '../base/maybe-promise.ts';
import { type Method, methodId } from '../contract/method.ts';
import type { Reader, Transaction } from '../store/store.ts';
import type { Caller } from './caller.ts';

/** What every operation knows about its call. */
export interface CallContext {
  readonly method: Method;
  readonly caller: Caller;
  /** The `authorization` value as it was sent, for the few methods that read the token itself. */
  readonly authorization: string | undefined;
  /** The client that sent the request. Absent for calls of the registry. */
  readonly peer?: { readonly address: string; readonly userAgent: string };
  /** The time of this call in milliseconds. Every timestamp that the call writes is this one. */
  readonly now: number;
}

export interface ReadContext extends CallContext {
  readonly db: Reader;
}

export interface WriteContext extends CallContext {
  readonly db: Transaction;
  /** Reports that the call changed nothing, such as a repeated delete. The pipeline then records no event. */
  unchanged(): void;
  /** Sends a value for which the response message has no field: as a header over REST, as metadata over gRPC. */
  setHeader(name: string, value: string): void;
}

/**
 * Tells the client something about a write that succeeded, in the header `warning` over REST and the metadata entry of
 * that name over gRPC: `299 - "<text>"` (RFC 7234, section 5.5).
 */
export const warn = ({ setHeader }: Pick<WriteContext, 'setHeader'>, text: string): void =>
  setHeader('warning', `299 - ${JSON.stringify(text.replaceAll(NOT_PRINTABLE, '?').slice(0, MAX_WARNING))}`);

const NOT_PRINTABLE = /[^\x20-\x7e]/g;
const MAX_WARNING = 1000;

/** The content of a CloudEvent about a change, without what the contract and the pipeline add. */
export interface EventFacts {
  readonly subject: string;
  /** Values of the extension attributes that the contract names for the method. */
  readonly extensions: Readonly<Record<string, string>>;
  readonly body: { readonly schema: DescMessage; readonly message: Message } | undefined;
}

/** The implementation of a method. The pipeline runs it after the caller is authorized and the request is decoded. */
export type Operation = ReadOperation | StreamOperation | WriteOperation;

interface ReadOperation {
  readonly mode: 'read';
  run(ctx: ReadContext, request: Message): MaybePromise<Message>;
}

interface StreamOperation {
  readonly mode: 'stream';
  run(ctx: ReadContext, request: Message): ListStream;
}

interface WriteOperation extends WriteHandlers<Message, Message, unknown> {
  readonly mode: 'write';
}

/** What a write consists of. Only `run` is inside the transaction. */
export interface WriteHandlers<Request, Response, Prepared = void> {
  /** `run` only inserts rows, so the store may batch it with other such writes (see WriteOptions). */
  readonly appendOnly?: boolean | undefined;
  /** Slow work that must not hold a transaction open, such as a request to another server. */
  prepare?(ctx: ReadContext, request: Request): Promise<Prepared>;
  run(ctx: WriteContext, request: Request, prepared: Prepared): MaybePromise<Response>;
  /** Required when the contract declares an event for the method. */
  event?(ctx: WriteContext, request: Request, response: Response): EventFacts;
}

/**
 * A list of any length, sent in parts. Each part is a response message with some of the items, and the last one is
 * returned. The next part is produced when the client has room for it, so only one is in memory at a time.
 */
export type ListStream<Part extends Message = Message> = AsyncIterableIterator<Part, Part>;

/** Operations by method id. */
export type Operations = Readonly<Record<string, Operation>>;

type Request<M extends DescMethodUnary> = MessageShape<M['input']>;
type Response<M extends DescMethodUnary> = MessageShape<M['output']>;

/** Implements a method that changes nothing. `run` sees the last commit. */
export const readOperation = <M extends DescMethodUnary>(
  method: M,
  run: (ctx: ReadContext, request: Request<M>) => MaybePromise<Response<M>>,
): Operations => ({
  [methodId(method)]: { mode: 'read', run: (ctx, request) => run(ctx, request as Request<M>) },
});

/** Implements a method whose response is streamed in parts. */
export const streamOperation = <M extends DescMethodUnary>(
  method: M,
  run: (ctx: ReadContext, request: Request<M>) => ListStream<Response<M>>,
): Operations => ({
  [methodId(method)]: { mode: 'stream', run: (ctx, request) => run(ctx, request as Request<M>) },
});

/** Implements a method that writes. Its rows and its event commit in one transaction. */
export const writeOperation = <M extends DescMethodUnary, Prepared = void>(
  method: M,
  handlers: WriteHandlers<Request<M>, Response<M>, Prepared>,
): Operations => ({
  // The pipeline passes each handler the request of this method and what its other handlers returned.
  [methodId(method)]: { mode: 'write', ...(handlers as WriteHandlers<Message, Message, unknown>) },
});

/** The operation of `method`, which must be a read: for an operation that wraps it. */
export function readOf<M extends DescMethodUnary>(operations: Operations, method: M) {
  const operation = operations[methodId(method)];
  if (operation?.mode !== 'read') throw new Error(`${methodId(method)} is not a read operation`);
  return (ctx: ReadContext, request: Request<M>): MaybePromise<Response<M>> =>
    operation.run(ctx, request) as MaybePromise<Response<M>>;
}
