import type { Message } from '@bufbuild/protobuf';
import type { Clock } from '../base/clock.ts';
import { ApiError, Code, unauthenticated, unimplemented } from '../base/errors.ts';
import { chain, type MaybePromise } from '../base/maybe-promise.ts';
import { type Tracing, tagWithTrace, traced } from '../base/tracing.ts';
import type { Method } from '../contract/method.ts';
import type { RequestRates } from '../limits/request-rates.ts';
import type { Caller } from '../resource/caller.ts';
import type { ListStream, Operation, Operations, ReadContext } from '../resource/operation.ts';
import type { Store } from '../store/store.ts';
import { addressedBy } from './addressed.ts';
import { authorize as checkCapabilities, scopeFieldOf } from './authorize.ts';
import type { Dispatch, IncomingCall } from './call.ts';
import { type CommitDecision, createCommitDecision, withDeadline } from './deadline.ts';
import { endWithAccess, isListStream, sendListStream } from './list-stream.ts';
import type { CallObserver } from './observe.ts';
import { requireTerms } from './require-terms.ts';
import { runInTransaction, runWriteOperation, type WriteOperation } from './run-write.ts';
import { unknownOrganization } from './unknown-organization.ts';
import { validateRequest } from './validate-request.ts';

/** Returns the caller who sent an `authorization` value from an address. Throws UNAUTHENTICATED. */
export type Authenticate = (authorization: string | undefined, address: string) => MaybePromise<Caller>;

export interface PipelineOptions {
  readonly operations: Operations;
  readonly store: Store;
  readonly authenticate: Authenticate;
  readonly anonymous: Caller;
  readonly clock: Clock;
  readonly timeoutMs: number;
  readonly observer: CallObserver;
  /** Absent for no limits. */
  readonly rates?: RequestRates | undefined;
  readonly tracing?: Tracing | undefined;
}

/** The steps of every call: authenticate, decode, authorize, validate, run (a write with its event), log and count. */
export function createPipeline(options: PipelineOptions): Dispatch {
  const { operations, store, anonymous, clock, timeoutMs, observer, rates, tracing } = options;
  const authenticate = traced(tracing, 'authenticate', options.authenticate);
  const authorize = traced(tracing, 'authorize', checkCapabilities);
  const handle = traced(tracing, 'handle', runOperation);

  function identify({ method: { access, requiredToken }, authorization, peer }: IncomingCall): MaybePromise<Caller> {
    const isAnonymous = access === 'public' || (access === 'optional' && !authorization);
    if (isAnonymous) rates?.countAnonymous(peer.address);
    if (requiredToken !== undefined && !authorization) {
      throw unauthenticated(`send ${requiredToken} as Authorization: Bearer <token>`);
    }
    return isAnonymous ? anonymous : authenticate(authorization, peer.address);
  }

  /** Stays synchronous where every step is: a get by a cached caller on SQLite allocates no promise. */
  const perform = (incoming: IncomingCall, decision?: CommitDecision): MaybePromise<Message | ListStream> =>
    chain(identify(incoming), (caller) => {
      rates?.countIdentity(caller.uid);
      const request = incoming.read();
      if (caller.forRequest) return performAs(incoming, caller.forRequest, request, decision);
      if (!(request instanceof Promise)) return run(incoming, caller, request, decision);
      return request.then((read) => runLate(incoming, caller, read, decision));
    });

  /** The token matches identities of several organizations, and the request addresses one of these. */
  async function performAs(
    incoming: IncomingCall,
    forRequest: NonNullable<Caller['forRequest']>,
    request: MaybePromise<Message>,
    decision: CommitDecision | undefined,
  ): Promise<Message | ListStream> {
    const read = await request;
    const caller = await forRequest(addressedBy(incoming.method, read));
    rates?.countIdentity(caller.uid);
    return runLate(incoming, caller, read, decision);
  }

  /** A body can take minutes to arrive. The transaction of a write checks the caller again itself. */
  const runLate = (
    incoming: IncomingCall,
    caller: Caller,
    request: Message,
    decision: CommitDecision | undefined,
  ): MaybePromise<Message | ListStream> =>
    decision
      ? run(incoming, caller, request, decision)
      : chain(caller.current(store.reader), (current) => run(incoming, current, request));

  function run(
    incoming: IncomingCall,
    identified: Caller,
    request: Message,
    decision?: CommitDecision,
  ): MaybePromise<Message | ListStream> {
    const { method, authorization, peer } = incoming;
    observer.identified?.(identified.uid);
    const { terms } = identified;
    const caller = terms ? requireTerms(method, identified, terms, request) : identified;
    try {
      authorize(method, caller, request);
    } catch (error) {
      if (error instanceof ApiError && error.code === Code.PERMISSION_DENIED)
        return denied(method, caller, request, error);
      throw error;
    }
    const operation = operations[method.id];
    if (!operation) throw unimplemented(method.id);
    validateRequest(method, request);
    // Reads see the last commit.
    const ctx: ReadContext = { method, caller, authorization, peer, now: clock(), db: store.reader };
    return handle(operation, ctx, request, incoming, decision);
  }

  async function denied(method: Method, caller: Caller, request: Message, error: ApiError): Promise<never> {
    throw (await unknownOrganization(store.reader, method, caller, scopeFieldOf(method, request))) ?? error;
  }

  function runOperation(
    operation: Operation,
    ctx: ReadContext,
    request: Message,
    incoming: IncomingCall,
    decision: CommitDecision | undefined,
  ): MaybePromise<Message | ListStream> {
    switch (operation.mode) {
      case 'read':
        return operation.run(ctx, request);
      case 'stream':
        return endWithAccess(operation.run(ctx, request), ctx);
      case 'write':
        return write(operation, ctx, request, incoming, decision);
    }
  }

  async function write(
    operation: WriteOperation,
    ctx: ReadContext,
    request: Message,
    { setHeader: sendHeader }: IncomingCall,
    decision: CommitDecision | undefined,
  ): Promise<Message> {
    const prepared = await operation.prepare?.(ctx, request);
    return runInTransaction(store, ctx, (tx) => runWriteOperation(tx, operation, request, prepared), {
      appendOnly: operation.appendOnly,
      authorize: ({ caller }) => authorize(ctx.method, caller, request),
      sendHeader,
      decision,
    });
  }

  async function finish(
    answer: Promise<Message | ListStream> | ListStream,
    incoming: IncomingCall,
    started: number,
    decision: CommitDecision | undefined,
  ): Promise<Message> {
    try {
      const result =
        answer instanceof Promise ? await withDeadline(answer, incoming, timeoutMs, clock, decision) : answer;
      const message = isListStream(result) ? await sendListStream(result, incoming, timeoutMs, clock) : result;
      observer.end(incoming, Code.OK, started);
      return message;
    } catch (thrown) {
      throw failed(incoming, thrown, started);
    }
  }

  function failed(incoming: IncomingCall, thrown: unknown, started: number): ApiError {
    const error = asApiError(thrown);
    if (error.code === Code.UNAUTHENTICATED) {
      rates?.countFailure(incoming.peer.address, incoming.authorization !== undefined);
    }
    // An error of a transport may have a status of its own.
    const { status } = error as { readonly status?: number };
    const isOrdinary = error.code !== Code.INTERNAL && status === undefined;
    observer.end(incoming, error.code, started, isOrdinary ? undefined : { cause: causeOf(error, thrown), status });
    if (tracing) tagWithTrace(error);
    return error;
  }

  const dispatch: Dispatch = (incoming) => {
    const started = observer.begin();
    const decision = operations[incoming.method.id]?.mode === 'write' ? createCommitDecision() : undefined;
    let answer: MaybePromise<Message | ListStream>;
    try {
      answer = perform(incoming, decision);
    } catch (thrown) {
      throw failed(incoming, thrown, started);
    }
    if (answer instanceof Promise || isListStream(answer)) return finish(answer, incoming, started, decision);
    observer.end(incoming, Code.OK, started);
    return answer;
  };
  const { trace } = observer;
  return trace ? (incoming) => trace(incoming, () => dispatch(incoming)) : dispatch;
}

/** What the log says about an internal error. */
const causeOf = (error: ApiError, thrown: unknown): unknown => (error.code === Code.INTERNAL ? thrown : undefined);

/** Hides what went wrong inside; the request id leads to the log line that says it. */
function asApiError(thrown: unknown): ApiError {
  if (thrown instanceof ApiError) return thrown;
  return new ApiError(
    Code.INTERNAL,
    'Internal: the server could not answer this request; its log has the reason under this request id',
  );
}
