import type { MetricObjectWithValues, MetricValue, Registry } from 'prom-client';
import type { CodeName } from './errors.ts';
import { counter, gauge, histogram, type Metric } from './fast-metrics.ts';
import { lazyPackage } from './lazy-package.ts';
import { version } from './version.ts';

const prometheus = lazyPackage<typeof import('prom-client')>('prom-client');

export type DatabaseOperation = 'read' | 'write';
/** `refused` is a transaction that our own rules rolled back; `error` is trouble with the database. */
export type DatabaseOutcome = 'ok' | 'refused' | 'error';

export interface Metrics {
  /** Counts one answered request. */
  observeRequest(method: string, wire: string, code: CodeName, seconds: number): void;
  readonly inFlight: { enter(): void; leave(): void };
  observeDatabase(operation: DatabaseOperation, outcome: DatabaseOutcome, seconds: number): void;
  /** Counts events of pulls that were lost because the database did not take them in time. */
  countDroppedPullEvents(count: number): void;
  /** Of events to subscriptions. */
  readonly delivery: {
    /** Counts one attempt; what is pending after it is sent again later. */
    observe(state: 'delivered' | 'failed' | 'pending', seconds: number): void;
    /** The time from a change to the arrival of its event. */
    observeLag(seconds: number): void;
    /** Says who knows how many deliveries wait. */
    countWaiting(count: () => Promise<number>): void;
  };
  readonly contentType: string;
  /** Everything in the Prometheus text format. */
  text(): Promise<string>;
  /** Everything as plain data, for `mergedText`. */
  snapshot(): Promise<MetricsSnapshot>;
}

/** The metrics of one process at one moment. */
export type MetricsSnapshot = readonly MetricObjectWithValues<MetricValue<string>>[];

/** The metrics of several processes that are one server to the outside, in the Prometheus text format. */
export const mergeSnapshots = (snapshots: readonly MetricsSnapshot[]): Promise<string> =>
  prometheus()
    .AggregatorRegistry.aggregate(snapshots as unknown as object[])
    .metrics();

// From a cached read to the default deadline of a request.
const requestBuckets = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30];
// A prepared read on SQLite takes some 10 microseconds.
const databaseBuckets = [0.00001, 0.000025, 0.0001, 0.00025, 0.001, 0.0025, 0.01, 0.025, 0.1, 0.25, 1, 5];

// From at once to the last attempt.
const lagBuckets = [0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 5, 30, 300, 1800, 10_000, 50_000, 100_000];

/** The metrics of one server. Several may live in one process, so each has its own registry. */
export function createMetrics(): Metrics {
  const metrics: Metric[] = [];
  const requestsOf = counter(metrics, {
    name: 'wharf_requests_total',
    help: 'Requests answered, by method, wire and status code.',
    labelNames: ['method', 'wire', 'code'],
  });
  const requestDuration = {
    name: 'wharf_request_duration_seconds',
    help: 'Time from a request to its answer.',
    labelNames: ['method', 'wire'],
  };
  const requestDurationOf = histogram(metrics, requestDuration, requestBuckets);
  const operationsOf = counter(metrics, {
    name: 'wharf_database_operations_total',
    help: 'Database reads and write transactions, by outcome.',
    labelNames: ['operation', 'outcome'],
  });
  const operationDuration = {
    name: 'wharf_database_operation_duration_seconds',
    help: 'Time of a database read, or of a write transaction until it is durable.',
    labelNames: ['operation'],
  };
  const operationDurationOf = histogram(metrics, operationDuration, databaseBuckets);
  const droppedEventsOf = counter(metrics, {
    name: 'wharf_dropped_pull_events_total',
    help: 'Events of pulls that were lost because the database did not take them in time.',
  });
  const attemptsOf = counter(metrics, {
    name: 'wharf_delivery_attempts_total',
    help: 'Attempts to deliver an event, by what became of it: delivered, retried or failed for good.',
    labelNames: ['outcome'],
  });
  const attemptDuration = {
    name: 'wharf_delivery_duration_seconds',
    help: 'Time from a request to a sink to its answer.',
  };
  const attemptDurationOf = histogram(metrics, attemptDuration, requestBuckets);
  const deliveryLag = {
    name: 'wharf_delivery_lag_seconds',
    help: 'Time from a change to the arrival of its event.',
  };
  const deliveryLagOf = histogram(metrics, deliveryLag, lagBuckets);
  let countWaiting = async (): Promise<number> => 0;
  const waiting = {
    name: 'wharf_deliveries_waiting',
    help: 'Deliveries that wait to be sent, for the first time or again.',
  };
  // Without a database the other metrics still tell something. All processes of a server see the same queue.
  gauge(metrics, waiting, () => countWaiting().catch(() => Number.NaN), { aggregator: 'max' });
  let running = 0;
  const inFlight = { name: 'wharf_requests_in_flight', help: 'Requests that wait for their answer now.' };
  gauge(metrics, inFlight, () => running);
  const build = { name: 'wharf_build_info', help: 'Always 1; the labels say what runs.' };
  gauge(metrics, build, () => 1, { aggregator: 'first', labels: { version, node: process.versions.node } });
  let registered: Registry | undefined;
  const registry = (): Registry => {
    registered ??= registryOf(metrics);
    return registered;
  };

  return {
    observeRequest(method, wire, code, seconds) {
      requestsOf(method, wire, code).add();
      requestDurationOf(method, wire).observe(seconds);
    },
    inFlight: {
      enter: () => void running++,
      leave: () => void running--,
    },
    observeDatabase(operation, outcome, seconds) {
      operationsOf(operation, outcome).add();
      operationDurationOf(operation).observe(seconds);
    },
    countDroppedPullEvents: (count) => droppedEventsOf().add(count),
    delivery: {
      observe(state, seconds) {
        attemptsOf(state === 'pending' ? 'retried' : state).add();
        attemptDurationOf().observe(seconds);
      },
      observeLag: (seconds) => deliveryLagOf().observe(seconds),
      countWaiting(count) {
        countWaiting = count;
      },
    },
    contentType: 'text/plain; version=0.0.4; charset=utf-8',
    text: async () => (await registry().metrics()) + (await processMetrics().metrics()),
    snapshot: async () => [...(await registry().getMetricsAsJSON()), ...(await processMetrics().getMetricsAsJSON())],
  };
}

/** Made when somebody looks for the first time: until then no server carries prom-client. */
function registryOf(metrics: readonly Metric[]): Registry {
  const registry = new (prometheus().Registry)();
  for (const metric of metrics) registry.registerMetric(metric as never);
  return registry;
}

let shared: Registry | undefined;

/** Memory, CPU, event loop: they belong to the process, and their observers can never be removed, so there is one set. */
function processMetrics(): Registry {
  if (!shared) {
    shared = new (prometheus().Registry)();
    prometheus().collectDefaultMetrics({ register: shared });
  }
  return shared;
}
