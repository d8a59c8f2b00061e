/*
 * Traces by OpenTelemetry. Imported only by a server that exports traces, because its packages take some 100 ms to load.
 */
import { randomUUID } from 'node:crypto';
import { hostname } from 'node:os';
import {
  type Attributes,
  createTraceState,
  ROOT_CONTEXT,
  type Span as SdkSpan,
  SpanKind,
  SpanStatusCode,
  TraceFlags,
  trace,
} from '@opentelemetry/api';
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-proto';
import { resourceFromAttributes } from '@opentelemetry/resources';
import {
  AlwaysOnSampler,
  BatchSpanProcessor,
  RandomIdGenerator,
  type SpanExporter,
  TracerProvider,
} from '@opentelemetry/sdk-trace';
import type { Log } from '../base/log.ts';
import type { Metrics } from '../base/metrics.ts';
import type { TraceContext } from '../base/trace-context.ts';
import type { Span, SpanOptions, Tracing, TracingSettings } from '../base/tracing.ts';
import { version } from '../base/version.ts';
import { withExportReports } from './export-reports.ts';
import { createSampler } from './sampler.ts';

export interface OtlpOptions {
  readonly log: Pick<Log, 'info' | 'warn'>;
  readonly metrics: Pick<Metrics, 'countSpans'>;
  /** How long `stop` waits for the last export. */
  readonly stopMs?: number;
}

/** The most spans that wait for their export. More are lost, so that a collector that is down costs little memory. */
const MAX_QUEUE = 2048;
/** The most steps of one call that are recorded. An import reads the database thousands of times. */
const MAX_STEPS = 100;

const KINDS = { server: SpanKind.SERVER, client: SpanKind.CLIENT };

/** Records spans and exports them to an OpenTelemetry collector, in batches by OTLP over HTTP. */
export function createOtlpTracing(settings: TracingSettings, options: OtlpOptions): Tracing {
  const { log, metrics, stopMs = 3_000 } = options;
  const sampler = createSampler(settings.sampler);
  const ids = new RandomIdGenerator();
  let waiting = 0;
  const otlp = new OTLPTraceExporter({ url: settings.url, headers: { ...settings.headers } });
  const exporter: SpanExporter = withExportReports(otlp, {
    log,
    url: settings.url,
    onExport: (count) => {
      waiting -= count;
    },
    countSpans: metrics.countSpans,
  });
  const provider = new TracerProvider({
    // `startCall` and `startCaused` decide, and create spans only of what is recorded.
    sampler: new AlwaysOnSampler(),
    resource: resourceFromAttributes({
      'service.version': version,
      'service.instance.id': randomUUID(),
      'host.name': hostname(),
      'process.pid': process.pid,
      ...settings.resourceAttributes,
    }),
    spanProcessors: [
      new BatchSpanProcessor({ exporter, scheduledDelayMillis: settings.exportDelayMs, maxQueueSize: MAX_QUEUE }),
    ],
  });
  const tracer = provider.getTracer('wharfinger', version);

  /** A span that only passes its context on. */
  function unrecorded(context: TraceContext): Span {
    return { context, isRecorded: false, set() {}, startChild: () => undefined, end() {} };
  }

  function recorded(span: SdkSpan, tracestate: string | undefined, steps: { left: number }): Span {
    const { traceId, spanId } = span.spanContext();
    const context = { traceId, spanId, isSampled: true, tracestate };
    return {
      context,
      isRecorded: true,
      set: (attributes) => void span.setAttributes(attributes as Attributes),
      startChild(name, options = {}) {
        if (steps.left-- <= 0) return undefined;
        return recorded(start(name, options, context, false), tracestate, steps);
      },
      end(failure) {
        if (waiting >= MAX_QUEUE) return metrics.countSpans('lost', 1);
        waiting++;
        if (failure) {
          span.setAttribute('error.type', failure.type);
          if (failure.isFault) span.setStatus({ code: SpanStatusCode.ERROR });
        }
        span.end();
      },
    };
  }

  function start(
    name: string,
    { kind, attributes }: SpanOptions,
    parent: TraceContext | undefined,
    isRemote: boolean,
    link?: TraceContext,
  ): SdkSpan {
    return tracer.startSpan(
      name,
      {
        kind: kind ? KINDS[kind] : SpanKind.INTERNAL,
        ...(attributes && { attributes: attributes as Attributes }),
        ...(link && { links: [{ context: toSdkContext(link, true) }] }),
      },
      parent ? trace.setSpanContext(ROOT_CONTEXT, toSdkContext(parent, isRemote)) : ROOT_CONTEXT,
    );
  }

  return {
    startCall(name, parent) {
      if (sampler.isCallRecorded(parent)) {
        return recorded(start(name, { kind: 'server' }, parent, true), parent?.tracestate, { left: MAX_STEPS });
      }
      return unrecorded({
        traceId: parent?.traceId ?? ids.generateTraceId(),
        spanId: ids.generateSpanId(),
        isSampled: false,
        tracestate: parent?.tracestate,
      });
    },
    startCaused(name, options, cause) {
      if (cause ? cause.isSampled : sampler.isCallRecorded(undefined)) {
        return recorded(start(name, options, undefined, false, cause), undefined, { left: MAX_STEPS });
      }
      return unrecorded({ traceId: ids.generateTraceId(), spanId: ids.generateSpanId(), isSampled: false });
    },
    async stop() {
      let timer: NodeJS.Timeout | undefined;
      const limit = new Promise<void>((resolve) => {
        timer = setTimeout(resolve, stopMs);
      });
      // A failed export was reported.
      await Promise.race([provider.shutdown().catch(() => {}), limit]);
      clearTimeout(timer);
    },
  };
}

const toSdkContext = ({ traceId, spanId, isSampled, tracestate }: TraceContext, isRemote: boolean) => ({
  traceId,
  spanId,
  isRemote,
  traceFlags: isSampled ? TraceFlags.SAMPLED : TraceFlags.NONE,
  ...(tracestate !== undefined && { traceState: createTraceState(tracestate) }),
});
