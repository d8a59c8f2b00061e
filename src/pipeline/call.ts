import type { Message } from '@bufbuild/protobuf';
import type { MaybePromise } from '../base/maybe-promise.ts';
import type { Method } from '../contract/method.ts';

/** A call as a wire hands it over: the same for REST and gRPC. */
export interface IncomingCall {
  readonly method: Method;
  readonly wire: 'rest' | 'grpc';
  /** The `authorization` header or metadata entry, exactly as sent. */
  readonly authorization: string | undefined;
  /** Given back in the answer and in every error and log line of this call. */
  readonly requestId: string;
  readonly peer: { readonly address: string; readonly userAgent: string };
  /** Aborted when the client goes away. Asked for by those who wait only: most calls are answered before anybody does. */
  signal(): AbortSignal;
  /** Milliseconds since the epoch after which the answer is DEADLINE_EXCEEDED; the server's own limit also holds. */
  readonly deadline?: number | undefined;
  /** Takes what goes beside the answer, once it is certain. */
  setHeader?(name: string, value: string): void;
  /**
   * Takes every page but the last of an answer that comes in pages; settles when the client has room for more. Only for
   * methods whose answer can be divided.
   */
  readonly sendPage?: ((page: Message) => MaybePromise<void>) | undefined;
  /** Decodes the request. Called after authentication, so that a stranger costs no parsing. */
  read(): MaybePromise<Message>;
}

/** The one door to every method: answers the response message, or the last page of it, or throws an ApiError, nothing else. */
export type Dispatch = (incoming: IncomingCall) => MaybePromise<Message>;
