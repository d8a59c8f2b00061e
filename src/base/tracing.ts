import { AsyncLocalStorage } from 'node:async_hooks';
import type { Log, LogFields } from './log.ts';
import type { MaybePromise } from './maybe-promise.ts';
import type { TraceContext } from './trace-context.ts';

/** The attributes of a span, with the names of the semantic conventions of OpenTelemetry. Never secrets. */
export type SpanAttributes = Readonly<Record<string, string | number | boolean | undefined>>;

/** The context that a request arrived with. */
export interface IncomingTrace extends TraceContext {
  /** Whether it came from a trusted proxy. Only then it decides whether spans are recorded. */
  readonly isTrusted: boolean;
}

export interface SpanOptions {
  readonly kind?: 'server' | 'client' | undefined;
  readonly attributes?: SpanAttributes;
}

/** Why a span failed. */
export interface SpanFailure {
  /** A short constant, such as the name of a status code. */
  readonly type: string;
  /** Whether the work failed, and not the request for it. */
  readonly isFault: boolean;
}

/** A part of a trace: one call, or a step of it. */
export interface Span {
  readonly context: TraceContext;
  /** A span that is not recorded only passes its context on. */
  readonly isRecorded: boolean;
  set(attributes: SpanAttributes): void;
  /** Starts a step of this span. Undefined if nothing is recorded, or if the call has too many steps already. */
  startChild(name: string, options?: SpanOptions): Span | undefined;
  end(failure?: SpanFailure): void;
}

/** Records spans and exports them. A server without tracing has none. */
export interface Tracing {
  /** Starts the span of a call. */
  startCall(name: string, parent: IncomingTrace | undefined): Span;
  /** Starts a trace of work that a call has caused, with a link to that call. It is recorded if the call was. */
  startCaused(name: string, options: SpanOptions, cause: TraceContext | undefined): Span;
  /** Exports what was recorded, for a limited time. */
  stop(): Promise<void>;
}

/** How spans are exported by OTLP. From the standard variables of OpenTelemetry, so that other tools can set them. */
export interface TracingSettings {
  /** Where spans are sent, such as `http://127.0.0.1:4318/v1/traces`. */
  readonly url: string;
  /** Sent with each export. May contain secrets. */
  readonly headers: Readonly<Record<string, string>>;
  readonly resourceAttributes: Readonly<Record<string, string>>;
  readonly sampler: SamplerSettings;
  /** How long spans wait for others before they are exported. */
  readonly exportDelayMs: number;
}

export interface SamplerSettings {
  /** Whether a trusted sender decides for the requests that it sends with a trace context. */
  readonly isParentBased: boolean;
  /** Which part of the other requests is recorded, 0 to 1. */
  readonly ratio: number;
}

const spans = new AsyncLocalStorage<Span>();

/** The span that the running code belongs to. Undefined without tracing. */
export const currentSpan = (): Span | undefined => spans.getStore();

/** Runs `work` and all that it starts as part of a span. */
export const runInSpan = <T>(span: Span, work: () => T): T => spans.run(span, work);

/** Ends a span when `work` ends. Stays synchronous if it is. */
export function endWith<T>(span: Span, work: () => MaybePromise<T>): MaybePromise<T> {
  let result: MaybePromise<T>;
  try {
    result = runInSpan(span, work);
  } catch (error) {
    span.end(failureOf(error));
    throw error;
  }
  if (!(result instanceof Promise)) {
    span.end();
    return result;
  }
  return result.then(
    (value) => {
      span.end();
      return value;
    },
    (error: unknown) => {
      span.end(failureOf(error));
      throw error;
    },
  );
}

/** Runs `work` as a step of the current span, if that is recorded. */
export function traceStep<T>(name: string, options: SpanOptions, work: () => MaybePromise<T>): MaybePromise<T> {
  const span = currentSpan()?.startChild(name, options);
  return span ? endWith(span, work) : work();
}

/** Returns `step`, which becomes a span each time it is called. Without tracing it is returned as it is. */
export const traced = <A extends unknown[], T>(
  tracing: Tracing | undefined,
  name: string,
  step: (...args: A) => MaybePromise<T>,
): ((...args: A) => MaybePromise<T>) => (tracing ? (...args) => traceStep(name, {}, () => step(...args)) : step);

/** Only the class of an error: its message may contain what users sent. */
const failureOf = (error: unknown): SpanFailure => ({
  type: error instanceof Error ? error.name : 'Error',
  isFault: !(error instanceof Error && error.name === 'ApiError'),
});

const failedTraces = new WeakMap<object, string>();

/** Remembers that an error belongs to the current trace, for the response that says so. */
export function tagWithTrace(error: object): void {
  const span = currentSpan();
  if (span) failedTraces.set(error, span.context.traceId);
}

/** The id of the trace that an error belongs to. */
export const traceIdOf = (error: object): string | undefined => failedTraces.get(error);

/** Returns the same log, whose lines have the id of the trace that they belong to. */
export function withTraceIds(log: Log): Log {
  const withId = (fields: LogFields): LogFields => {
    const span = currentSpan();
    return span ? { ...fields, traceId: span.context.traceId } : fields;
  };
  return {
    debug: (fields, message) => log.debug(() => withId(typeof fields === 'function' ? fields() : fields), message),
    info: (fields, message) => log.info(withId(fields), message),
    warn: (fields, message) => log.warn(withId(fields), message),
    error: (fields, message) => log.error(withId(fields), message),
  };
}
