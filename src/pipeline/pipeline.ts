import type { Message } from '@bufbuild/protobuf';
import type { Clock } from '../base/clock.ts';
import { ApiError, Code, codeName, unimplemented } from '../base/errors.ts';
import type { Log } from '../base/log.ts';
import type { MaybePromise } from '../base/maybe-promise.ts';
import { chain } from '../base/maybe-promise.ts';
import type { Metrics } from '../base/metrics.ts';
import type { Caller } from '../resource/caller.ts';
import type { ListStream, Operation, Operations, ReadContext } from '../resource/operation.ts';
import type { Store, Transaction } from '../store/store.ts';
import { authorize } from './authorize.ts';
import type { Dispatch, IncomingCall } from './call.ts';
import { withDeadline } from './deadline.ts';
import { recordEvent } from './event.ts';
import { isListStream, sendListStream } from './pages.ts';
import { validateRequest } from './validate.ts';

export interface PipelineOptions {
  readonly operations: Operations;
  readonly store: Store;
  /** Who sent this `authorization`; throws UNAUTHENTICATED. */
  readonly authenticate: (authorization: string | undefined) => MaybePromise<Caller>;
  readonly anonymous: Caller;
  readonly clock: Clock;
  readonly timeoutMs: number;
  readonly log: Log;
  readonly metrics: Pick<Metrics, 'observeRequest' | 'inFlight'>;
}

/** The steps that every call takes, on either wire. */
export function createPipeline(options: PipelineOptions): Dispatch {
  const { operations, store, authenticate, anonymous, clock, timeoutMs, log, metrics } = options;

  function recognize({ method: { access }, authorization }: IncomingCall): MaybePromise<Caller> {
    if (access === 'public' || (access === 'optional' && !authorization)) return anonymous;
    return authenticate(authorization);
  }

  /** What is there already is never waited for: a known caller on SQLite gets an answer without a single promise. */
  const perform = (incoming: IncomingCall): MaybePromise<Message | ListStream> =>
    chain(recognize(incoming), (caller) => chain(incoming.read(), (request) => handle(incoming, caller, request)));

  function handle(incoming: IncomingCall, caller: Caller, request: Message): MaybePromise<Message | ListStream> {
    const { method, authorization } = incoming;
    authorize(method, caller, request);
    const operation = operations[method.id];
    if (!operation) throw unimplemented(method.id);
    validateRequest(method, request);
    // Reads see the last commit.
    const ctx: ReadContext = { method, caller, authorization, now: clock(), db: store.reader };
    return operation.mode === 'write' ? write(operation, ctx, request, incoming) : operation.run(ctx, request);
  }

  /** A write, its index rows and its event commit together or not at all. */
  async function write(
    operation: WriteOperation,
    reading: ReadContext,
    request: Message,
    incoming: IncomingCall,
  ): Promise<Message> {
    const { event } = reading.method;
    const prepared = await operation.prepare?.(reading, request);
    const headers = new Map<string, string>();
    const work = async (db: Transaction) => {
      let changed = true;
      const unchanged = () => {
        changed = false;
      };
      const setHeader = (name: string, value: string) => void headers.set(name, value);
      const ctx = { ...reading, db, unchanged, setHeader };
      const response = await operation.run(ctx, request, prepared);
      if (event && changed) await recordEvent(ctx, event, operation.event?.(ctx, request, response));
      return response;
    };
    const response = await store.write(work, { appendOnly: operation.appendOnly });
    for (const [name, value] of headers) incoming.setHeader?.(name, value);
    return response;
  }

  async function answerLater(
    answer: Promise<Message | ListStream> | ListStream,
    incoming: IncomingCall,
    started: number,
  ): Promise<Message> {
    try {
      const found = answer instanceof Promise ? await withDeadline(answer, incoming, timeoutMs, clock) : answer;
      const message = isListStream(found) ? await sendListStream(found, incoming, timeoutMs, clock) : found;
      ended(incoming, Code.OK, started);
      return message;
    } catch (thrown) {
      throw failed(incoming, thrown, started);
    }
  }

  function ended(incoming: IncomingCall, code: Code, started: number): void {
    const seconds = (performance.now() - started) / 1000;
    metrics.inFlight.leave();
    metrics.observeRequest(incoming.method.id, incoming.wire, codeName(code), seconds);
    logCall(log, incoming, code, seconds);
  }

  function failed(incoming: IncomingCall, thrown: unknown, started: number): ApiError {
    const error = asApiError(thrown);
    if (error.code === Code.INTERNAL) log.error({ requestId: incoming.requestId, error: thrown }, 'call failed');
    ended(incoming, error.code, started);
    return error;
  }

  return (incoming) => {
    const started = performance.now();
    metrics.inFlight.enter();
    let answer: MaybePromise<Message | ListStream>;
    try {
      answer = perform(incoming);
    } catch (thrown) {
      throw failed(incoming, thrown, started);
    }
    if (answer instanceof Promise || isListStream(answer)) return answerLater(answer, incoming, started);
    ended(incoming, Code.OK, started);
    return answer;
  };
}

type WriteOperation = Extract<Operation, { readonly mode: 'write' }>;

/** Changes and refusals are worth a line each; successful reads only when somebody is looking. */
function logCall(log: Log, incoming: IncomingCall, code: Code, seconds: number): void {
  const { method, wire, requestId } = incoming;
  const fields = () => ({
    requestId,
    method: method.id,
    wire,
    code: codeName(code),
    ms: Math.round(seconds * 1e6) / 1000,
    peer: incoming.peer.address,
  });
  if (method.routes[0]?.verb === 'GET' && code === Code.OK) log.debug(fields, 'call');
  else log.info(fields(), 'call');
}

/** What went wrong inside stays inside; the request id leads to the log. */
function asApiError(thrown: unknown): ApiError {
  if (thrown instanceof ApiError) return thrown;
  return new ApiError(Code.INTERNAL, 'Internal: the server failed to answer; its log says why under this request id');
}
