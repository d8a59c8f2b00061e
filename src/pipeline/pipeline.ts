import type { Message } from '@bufbuild/protobuf';
import type { Clock } from '../base/clock.ts';
import { ApiError, Code, unimplemented } from '../base/errors.ts';
import { chain, type MaybePromise } from '../base/maybe-promise.ts';
import type { Caller } from '../resource/caller.ts';
import type { ListStream, Operations, ReadContext } from '../resource/operation.ts';
import type { Store } from '../store/store.ts';
import { authorize } from './authorize.ts';
import type { Dispatch, IncomingCall } from './call.ts';
import { withDeadline } from './deadline.ts';
import { isListStream, sendListStream } from './list-stream.ts';
import type { CallObserver } from './observe.ts';
import { runInTransaction, runWriteOperation, type WriteOperation } from './run-write.ts';
import { validateRequest } from './validate-request.ts';

/** Returns the caller who sent an `authorization` value. Throws UNAUTHENTICATED. */
export type Authenticate = (authorization: string | undefined) => MaybePromise<Caller>;

export interface PipelineOptions {
  readonly operations: Operations;
  readonly store: Store;
  readonly authenticate: Authenticate;
  readonly anonymous: Caller;
  readonly clock: Clock;
  readonly timeoutMs: number;
  readonly observer: CallObserver;
}

/** The steps of every call: authenticate, decode, authorize, validate, run (a write with its event), log and count. */
export function createPipeline(options: PipelineOptions): Dispatch {
  const { operations, store, authenticate, anonymous, clock, timeoutMs, observer } = options;

  function identify({ method: { access }, authorization }: IncomingCall): MaybePromise<Caller> {
    if (access === 'public' || (access === 'optional' && !authorization)) return anonymous;
    return authenticate(authorization);
  }

  /** Stays synchronous where every step is: a get by a cached caller on SQLite allocates no promise. */
  const perform = (incoming: IncomingCall): MaybePromise<Message | ListStream> =>
    chain(identify(incoming), (caller) => chain(incoming.read(), (request) => run(incoming, caller, request)));

  function run(incoming: IncomingCall, caller: Caller, request: Message): MaybePromise<Message | ListStream> {
    const { method, authorization } = incoming;
    authorize(method, caller, request);
    const operation = operations[method.id];
    if (!operation) throw unimplemented(method.id);
    validateRequest(method, request);
    // Reads see the last commit.
    const ctx: ReadContext = { method, caller, authorization, now: clock(), db: store.reader };
    return operation.mode === 'write' ? write(operation, ctx, request, incoming) : operation.run(ctx, request);
  }

  async function write(
    operation: WriteOperation,
    ctx: ReadContext,
    request: Message,
    { setHeader: sendHeader }: IncomingCall,
  ): Promise<Message> {
    const prepared = await operation.prepare?.(ctx, request);
    return runInTransaction(store, ctx, (tx) => runWriteOperation(tx, operation, request, prepared), {
      appendOnly: operation.appendOnly,
      sendHeader,
    });
  }

  async function finish(
    answer: Promise<Message | ListStream> | ListStream,
    incoming: IncomingCall,
    started: number,
  ): Promise<Message> {
    try {
      const result = answer instanceof Promise ? await withDeadline(answer, incoming, timeoutMs, clock) : answer;
      const message = isListStream(result) ? await sendListStream(result, incoming, timeoutMs, clock) : result;
      observer.end(incoming, Code.OK, started);
      return message;
    } catch (thrown) {
      throw failed(incoming, thrown, started);
    }
  }

  function failed(incoming: IncomingCall, thrown: unknown, started: number): ApiError {
    const error = asApiError(thrown);
    observer.end(incoming, error.code, started, error.code === Code.INTERNAL ? { cause: thrown } : undefined);
    return error;
  }

  return (incoming) => {
    const started = observer.begin();
    let answer: MaybePromise<Message | ListStream>;
    try {
      answer = perform(incoming);
    } catch (thrown) {
      throw failed(incoming, thrown, started);
    }
    if (answer instanceof Promise || isListStream(answer)) return finish(answer, incoming, started);
    observer.end(incoming, Code.OK, started);
    return answer;
  };
}

/** Hides what went wrong inside; the request id leads to the log line that says it. */
function asApiError(thrown: unknown): ApiError {
  if (thrown instanceof ApiError) return thrown;
  return new ApiError(
    Code.INTERNAL,
    'Internal: the server could not answer this request; its log has the reason under this request id',
  );
}
