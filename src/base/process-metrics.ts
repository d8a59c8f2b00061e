import { monitorEventLoopDelay } from 'node:perf_hooks';
import { collectDefaultMetrics, Registry } from 'prom-client';
import { createGauge, type Instrument } from './instruments.ts';

/**
 * How often the delay of the event loop is measured. Each measurement wakes the process: 10 ms, the default of
 * prom-client, takes 0.6 % of a core of an idle server, 50 ms takes 0.1 %.
 */
const RESOLUTION_MS = 50;

/** The metrics of prom-client that measure the event loop every 10 ms. `createEventLoopDelay` replaces them. */
const REPLACED = ['min', 'max', 'mean', 'stddev', 'p50', 'p90', 'p99'].map(
  (name) => `nodejs_eventloop_lag_${name}_seconds`,
);
/** Gauges of prom-client with names of counters, which Prometheus tools warn about. Others have the same numbers. */
const MISNAMED = ['handles', 'requests', 'resources'].map((name) => `nodejs_active_${name}_total`);

/** Memory, CPU, garbage collection and event loop of this process. Measures the event loop from now on. */
export function createProcessMetrics(): Registry {
  const registry = new Registry();
  // An hour, so that the measurement of prom-client never wakes the process.
  collectDefaultMetrics({ register: registry, eventLoopMonitoringPrecision: 3_600_000 });
  for (const name of [...REPLACED, ...MISNAMED]) registry.removeSingleMetric(name);
  // prom-client leaves it out when it merges several processes.
  Object.assign(registry.getSingleMetric('process_start_time_seconds') as object, { aggregator: 'min' });
  const histogram = monitorEventLoopDelay({ resolution: RESOLUTION_MS });
  histogram.enable();
  for (const gauge of createEventLoopDelay(histogram)) registry.registerMetric(gauge as never);
  return registry;
}

interface EventLoopDelay {
  readonly p50: number;
  readonly p99: number;
  readonly max: number;
}

/** The delay of the event loop since the metrics were last collected. With several processes, that of the slowest. */
function createEventLoopDelay(histogram: ReturnType<typeof monitorEventLoopDelay>): Instrument[] {
  // The measured intervals include the resolution itself.
  const seconds = (nanoseconds: number): number => Math.max(0, nanoseconds / 1e9 - RESOLUTION_MS / 1e3);
  let last: EventLoopDelay = { p50: 0, p99: 0, max: 0 };
  let isRead = false;
  function read(): EventLoopDelay {
    if (isRead || histogram.count === 0) return last;
    last = {
      p50: seconds(histogram.percentile(50)),
      p99: seconds(histogram.percentile(99)),
      max: seconds(histogram.max),
    };
    histogram.reset();
    // The gauges of one collection are read in one turn of the event loop and show the same measurements.
    isRead = true;
    setImmediate(() => {
      isRead = false;
    });
    return last;
  }
  const gauge = (name: keyof EventLoopDelay, what: string): Instrument =>
    createGauge(
      {
        name: `wharf_event_loop_delay_${name}_seconds`,
        help: `${what} delay of the event loop since the metrics were last collected, measured every ${RESOLUTION_MS} ms.`,
      },
      () => read()[name],
      { aggregator: 'max' },
    );
  return [gauge('p50', 'Median'), gauge('p99', '99th percentile of the'), gauge('max', 'Longest')];
}
