import type { Message } from '@bufbuild/protobuf';
import type { MaybePromise } from '../base/maybe-promise.ts';
import type { IncomingTrace } from '../base/tracing.ts';
import type { Method, Route } from '../contract/method.ts';

/** A call as REST and gRPC pass it to the pipeline. */
export interface IncomingCall {
  readonly method: Method;
  readonly wire: 'rest' | 'grpc';
  /** The `authorization` header or metadata entry, as sent. */
  readonly authorization: string | undefined;
  /** Returned to the client, and part of every error and log line of this call. */
  readonly requestId: string;
  readonly peer: { readonly address: string; readonly userAgent: string };
  /** The route that it came by. Absent over gRPC. */
  readonly route?: Route;
  /** The trace that it is part of. Absent without tracing. */
  readonly trace?: IncomingTrace | undefined;
  /** Aborts when the client disconnects. A function, because most calls end before anything needs the signal. */
  signal(): AbortSignal;
  /** Milliseconds since the epoch after which the answer is DEADLINE_EXCEEDED. The server's own limit applies too. */
  readonly deadline?: number | undefined;
  /** Sends a header, or metadata over gRPC, with a successful response. */
  setHeader?(name: string, value: string): void;
  /**
   * Sends a part of a streamed response, all but the last. Resolves when the client has room for more. Present for methods
   * whose response is nothing but a list.
   */
  readonly sendPart?: ((part: Message) => MaybePromise<void>) | undefined;
  /** Decodes the request. Called after authentication, so that unauthenticated requests cost no parsing. */
  read(): MaybePromise<Message>;
}

/** Runs a call. Returns the response message, or the last part of a streamed one; throws an ApiError and nothing else. */
export type Dispatch = (incoming: IncomingCall) => MaybePromise<Message>;
