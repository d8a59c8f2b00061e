import { performance } from 'node:perf_hooks';
import type { Message } from '@bufbuild/protobuf';
import type { Clock } from '../base/clock.ts';
import { ApiError, Code, codeName, unimplemented } from '../base/errors.ts';
import type { Log } from '../base/log.ts';
import type { Metrics } from '../base/metrics.ts';
import type { Caller, Operation, Operations, ReadContext } from '../resource/context.ts';
import type { Maybe, Store } from '../store/store.ts';
import { authorize } from './authorize.ts';
import type { Call, Incoming } from './call.ts';
import { withDeadline } from './deadline.ts';
import { recordEvent } from './event.ts';
import { validateRequest } from './validate.ts';

export interface PipelineOptions {
  readonly operations: Operations;
  readonly store: Store;
  /** Who sent this `authorization`; throws UNAUTHENTICATED. */
  readonly authenticate: (authorization: string | undefined) => Maybe<Caller>;
  readonly nobody: Caller;
  readonly clock: Clock;
  readonly timeoutMs: number;
  readonly log: Log;
  readonly metrics: Pick<Metrics, 'observe' | 'inFlight'>;
}

/** The steps that every call takes, on either wire. */
export function createPipeline(options: PipelineOptions): Call {
  const { operations, store, authenticate, nobody, clock } = options;

  function recognize({ method: { access }, authorization }: Incoming): Maybe<Caller> {
    if (access === 'public' || (access === 'optional' && !authorization)) return nobody;
    return authenticate(authorization);
  }

  async function perform(incoming: Incoming): Promise<Message> {
    const { method } = incoming;
    const caller = await recognize(incoming);
    const request = await incoming.read();
    authorize(method, caller, request);
    const operation = operations[method.id];
    if (!operation) throw unimplemented(method.id);
    validateRequest(method, request);
    const headers = new Map<string, string>();
    const call = { method, caller, authorization: incoming.authorization, now: clock() };
    const response = await handle(operation, call, request, headers);
    for (const [name, value] of headers) incoming.setHeader?.(name, value);
    return response;
  }

  /** Reads see the last commit; a write, its index rows and its event commit together or not at all. */
  async function handle(
    operation: Operation,
    call: Omit<ReadContext, 'db'>,
    request: Message,
    headers: Map<string, string>,
  ): Promise<Message> {
    const { method } = call;
    const reading: ReadContext = { ...call, db: store.reader };
    if (operation.mode === 'read') return operation.run(reading, request);
    const prepared = await operation.prepare?.(reading, request);
    return store.write(async (db) => {
      let changed = true;
      const unchanged = () => {
        changed = false;
      };
      const setHeader = (name: string, value: string) => void headers.set(name, value);
      const ctx = { ...call, db, unchanged, setHeader };
      const response = await operation.run(ctx, request, prepared);
      if (method.event && changed) await recordEvent(ctx, method.event, operation.event?.(ctx, request, response));
      return response;
    });
  }

  return async (incoming) => {
    const started = performance.now();
    let code: Code = Code.OK;
    options.metrics.inFlight.enter();
    try {
      return await withDeadline(perform(incoming), incoming, options.timeoutMs, clock);
    } catch (thrown) {
      const error = asApiError(thrown);
      code = error.code;
      if (error.code === Code.INTERNAL)
        options.log.error({ requestId: incoming.requestId, error: thrown }, 'call failed');
      throw error;
    } finally {
      const seconds = (performance.now() - started) / 1000;
      options.metrics.inFlight.leave();
      options.metrics.observe(incoming.method.id, incoming.wire, codeName(code), seconds);
      report(options.log, incoming, code, seconds);
    }
  };
}

/** Changes and refusals are worth a line each; successful reads only when somebody is looking. */
function report(log: Log, { method, wire, requestId, peer }: Incoming, code: Code, seconds: number): void {
  const isRead = method.routes[0]?.verb === 'GET';
  const fields = { requestId, method: method.id, wire, code: codeName(code), ms: Math.round(seconds * 1e6) / 1000 };
  if (isRead && code === Code.OK) log.debug({ ...fields, peer: peer.address }, 'call');
  else log.info({ ...fields, peer: peer.address }, 'call');
}

/** What went wrong inside stays inside; the request id leads to the log. */
function asApiError(thrown: unknown): ApiError {
  if (thrown instanceof ApiError) return thrown;
  return new ApiError(Code.INTERNAL, 'Internal: the server failed to answer; its log says why under this request id');
}
