import { Code, codeName } from '../base/errors.ts';
import type { Log } from '../base/log.ts';
import type { Metrics } from '../base/metrics.ts';
import { currentSpan, type IncomingTrace, runInSpan, type Tracing } from '../base/tracing.ts';
import type { Method } from '../contract/method.ts';
import { callAttributes, endAttributes, failureOf } from './call-attributes.ts';

export type Wire = 'rest' | 'grpc' | 'oci';

/** What the log, the metrics and the traces say about every call, on every wire. */
export interface ObservedCall {
  readonly method: Pick<Method, 'id' | 'routes'>;
  readonly wire: Wire;
  readonly requestId: string;
  readonly peer: { readonly address: string };
  /** How it came over HTTP. Only for traces. */
  readonly route?: { readonly verb: string; readonly template: string } | undefined;
  /** The trace that it is part of. Only for traces. */
  readonly trace?: IncomingTrace | undefined;
}

export interface EndOptions {
  /** What an internal error was caused by. The log gets it, the client does not. */
  readonly cause?: unknown;
  /** Logged at debug level only. By default, successful reads are. */
  readonly isRoutine?: boolean;
  /** The HTTP status, where it does not follow from the code. */
  readonly status?: number | undefined;
  /** Fields of the log line that only this wire has. */
  readonly fields?: Readonly<Record<string, unknown>>;
}

export interface CallObserver {
  /** Counts a call as running and returns its start time. */
  begin(): number;
  /** Counts and logs a call that has ended. */
  end(call: ObservedCall, code: Code, started: number, options?: EndOptions): void;
  /** Runs a call, from `begin` to `end`, in a span of its own. Absent without tracing. */
  readonly trace?: (<T>(call: ObservedCall, work: () => T) => T) | undefined;
  /** Tells who calls. Absent without tracing. */
  readonly identified?: ((uid: string) => void) | undefined;
}

export interface CallObserverOptions {
  readonly log: Log;
  readonly metrics: Pick<Metrics, 'observeRequest' | 'inFlight'>;
  readonly tracing?: Tracing | undefined;
}

export function createCallObserver({ log, metrics, tracing }: CallObserverOptions): CallObserver {
  return {
    ...(tracing && traceCalls(tracing)),
    begin() {
      metrics.inFlight.enter();
      return performance.now();
    },
    end(call, code, started, options) {
      const { method, wire, requestId, peer } = call;
      const seconds = (performance.now() - started) / 1000;
      metrics.inFlight.leave();
      metrics.observeRequest(method.id, wire, codeName(code), seconds);
      if (options?.cause !== undefined) log.error({ requestId, error: options.cause }, 'call failed');
      const fields = () => ({
        requestId,
        method: method.id,
        wire,
        code: codeName(code),
        ms: Math.round(seconds * 1e6) / 1000,
        peer: peer.address,
        ...options?.fields,
      });
      const isRoutine = options?.isRoutine ?? (code === Code.OK && method.routes[0]?.verb === 'GET');
      if (isRoutine) log.debug(fields, 'call');
      else log.info(fields(), 'call');
      if (tracing) endCallSpan(call, code, options?.status);
    },
  };
}

const traceCalls = (tracing: Tracing): Pick<CallObserver, 'trace' | 'identified'> => ({
  trace(call, work) {
    const span = tracing.startCall(call.method.id, call.trace);
    if (span.isRecorded) span.set(callAttributes(call));
    return runInSpan(span, work);
  },
  identified(uid) {
    if (uid !== '') currentSpan()?.set({ 'enduser.id': uid });
  },
});

function endCallSpan(call: ObservedCall, code: Code, status: number | undefined): void {
  const span = currentSpan();
  if (!span?.isRecorded) return;
  span.set(endAttributes(call, code, status));
  span.end(failureOf(code));
}
