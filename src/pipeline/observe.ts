import { Code, codeName } from '../base/errors.ts';
import type { Log } from '../base/log.ts';
import type { Metrics } from '../base/metrics.ts';
import type { Method } from '../contract/method.ts';

export type Wire = 'rest' | 'grpc' | 'oci';

/** What the log and the metrics say about every call, on every wire. */
export interface ObservedCall {
  readonly method: Pick<Method, 'id' | 'routes'>;
  readonly wire: Wire;
  readonly requestId: string;
  readonly peer: { readonly address: string };
}

export interface EndOptions {
  /** What an internal error was caused by. The log gets it, the client does not. */
  readonly cause?: unknown;
  /** Logged at debug level only. By default, successful reads are. */
  readonly isRoutine?: boolean;
  /** Fields of the log line that only this wire has. */
  readonly fields?: Readonly<Record<string, unknown>>;
}

export interface CallObserver {
  /** Counts a call as running and returns its start time. */
  begin(): number;
  /** Counts and logs a call that has ended. */
  end(call: ObservedCall, code: Code, started: number, options?: EndOptions): void;
}

export interface CallObserverOptions {
  readonly log: Log;
  readonly metrics: Pick<Metrics, 'observeRequest' | 'inFlight'>;
}

export function createCallObserver({ log, metrics }: CallObserverOptions): CallObserver {
  return {
    begin() {
      metrics.inFlight.enter();
      return performance.now();
    },
    end({ method, wire, requestId, peer }, code, started, options) {
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
    },
  };
}
