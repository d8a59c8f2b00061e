import type { MetricObjectWithValues, MetricValue, Registry } from 'prom-client';
import type { CodeName } from './errors.ts';
import {
  type Aggregator,
  createCounter,
  createGauge,
  createGauges,
  createHistogram,
  type Instrument,
  type Sample,
} from './instruments.ts';
import type { MaybePromise } from './maybe-promise.ts';
import { commit, version } from './version.ts';

export type DatabaseOperation = 'read' | 'write';
/** `refused` is a transaction that was rolled back with an ApiError; `error` is a failure of the database. */
export type DatabaseOutcome = 'ok' | 'refused' | 'error';

/** A gauge that is read each time the metrics are collected. */
export interface GaugeDeclaration {
  readonly name: string;
  readonly help: string;
  /**
   * Whether all processes of a server would read the same value, such as a size in the database. Then one of them reads
   * it. Otherwise `aggregator` merges the values of the processes.
   */
  readonly isShared?: boolean;
  readonly aggregator?: Aggregator;
  /** A number for a gauge without labels. A gauge whose read fails has no value. */
  read(): MaybePromise<number | undefined | readonly Sample[]>;
}

export interface Metrics {
  observeRequest(method: string, wire: string, code: CodeName, seconds: number): void;
  readonly inFlight: { enter(): void; leave(): void };
  observeDatabase(operation: DatabaseOperation, outcome: DatabaseOutcome, seconds: number): void;
  /** Counts pull events that were lost because the database did not store them in time. */
  countDroppedPullEvents(count: number): void;
  /** Counts a blob that was found to be missing, or to have the wrong size or content. */
  countDamagedBlob(problem: 'missing' | 'size' | 'content'): void;
  /** Counts a request that a quota or a rate limit refused. */
  countRefusal(quota: string): void;
  /** Counts spans of traces that were exported to the collector, or lost because it did not accept them. */
  countSpans(outcome: 'exported' | 'lost', count: number): void;
  /** Deliveries of events to subscriptions. */
  readonly delivery: {
    /** Counts one attempt. A delivery that is still `pending` after it will be retried. */
    observe(state: 'delivered' | 'failed' | 'pending', seconds: number): void;
    /** Observes the time from a change to the delivery of its event. */
    observeLag(seconds: number): void;
    /** Sets the function that counts the pending deliveries. */
    readWaitingFrom(count: () => Promise<number>): void;
  };
  /** Adds gauges. They must be added before the metrics are first collected. */
  addGauges(gauges: readonly GaugeDeclaration[]): void;
  readonly contentType: string;
  /** All metrics in the Prometheus text format. */
  text(): Promise<string>;
  /** All metrics as plain data, for `mergeSnapshots`. The shared gauges are left out unless they are asked for. */
  snapshot(options: { readonly includeShared: boolean }): Promise<MetricsSnapshot>;
}

/** The metrics of one process at one moment. */
export type MetricsSnapshot = readonly MetricObjectWithValues<MetricValue<string>>[];

/** Merges the metrics of the processes of one server into the Prometheus text format. */
export const mergeSnapshots = async (snapshots: readonly MetricsSnapshot[]): Promise<string> =>
  (await loadPrometheus()).mergeSnapshots(snapshots);

/** Loads prom-client when metrics are first collected. A start is 20 ms faster without it. */
const loadPrometheus = () => import('./prometheus.ts');

// From a cached read to the default deadline of a request.
const requestBuckets = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30];
// A prepared read on SQLite takes some 10 microseconds.
const databaseBuckets = [0.00001, 0.000025, 0.0001, 0.00025, 0.001, 0.0025, 0.01, 0.025, 0.1, 0.25, 1, 5];
// From an immediate delivery to the last retry.
const lagBuckets = [0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 5, 30, 300, 1800, 10_000, 50_000, 100_000];

/** The metrics of one server. Each server has its own registry, because several may run in one process. */
export function createMetrics(): Metrics {
  const requests = createCounter({
    name: 'wharf_requests_total',
    help: 'Requests answered, by method, wire and status code.',
    labelNames: ['method', 'wire', 'code'],
  });
  const requestDuration = createHistogram(
    {
      name: 'wharf_request_duration_seconds',
      help: 'Time from a request to its response.',
      labelNames: ['method', 'wire'],
    },
    requestBuckets,
  );
  const databaseOperations = createCounter({
    name: 'wharf_database_operations_total',
    help: 'Database reads and write transactions, by outcome.',
    labelNames: ['operation', 'outcome'],
  });
  const databaseDuration = createHistogram(
    {
      name: 'wharf_database_operation_duration_seconds',
      help: 'Time of a database read, or of a write transaction until it is durable.',
      labelNames: ['operation'],
    },
    databaseBuckets,
  );
  const droppedPullEvents = createCounter({
    name: 'wharf_dropped_pull_events_total',
    help: 'Pull events that were lost because the database did not store them in time.',
  });
  const damagedBlobs = createCounter({
    name: 'wharf_registry_damaged_blobs_total',
    help: 'Times that the file of a blob was found to be missing, or to have the wrong size or content.',
    labelNames: ['problem'],
  });
  const refusals = createCounter({
    name: 'wharf_quota_refusals_total',
    help: 'Requests that a quota or a rate limit refused, by quota.',
    labelNames: ['quota'],
  });
  const spans = createCounter({
    name: 'wharf_trace_spans_total',
    help: 'Spans of traces that were exported, or lost because the collector did not accept them.',
    labelNames: ['outcome'],
  });
  const deliveryAttempts = createCounter({
    name: 'wharf_delivery_attempts_total',
    help: 'Attempts to deliver an event, by outcome: delivered, retried, or failed without a further retry.',
    labelNames: ['outcome'],
  });
  const deliveryDuration = createHistogram(
    { name: 'wharf_delivery_duration_seconds', help: 'Time from a request to a sink to its response.' },
    requestBuckets,
  );
  const deliveryLag = createHistogram(
    { name: 'wharf_delivery_lag_seconds', help: 'Time from a change to the delivery of its event.' },
    lagBuckets,
  );
  let countWaiting = async (): Promise<number> => 0;
  const deliveriesWaiting: GaugeDeclaration = {
    name: 'wharf_deliveries_waiting',
    help: 'Deliveries that wait for their first attempt or a retry.',
    isShared: true,
    read: () => countWaiting(),
  };
  let requestsRunning = 0;
  const requestsInFlight = createGauge(
    { name: 'wharf_requests_in_flight', help: 'Requests that are being processed now.' },
    () => requestsRunning,
  );
  const buildInfo = createGauge(
    {
      name: 'wharf_build_info',
      help: 'Always 1; the labels are the version of the server, of Node, and the commit of a release.',
    },
    () => 1,
    { aggregator: 'first', labels: { version, node: process.versions.node, ...(commit !== undefined && { commit }) } },
  );

  const gauges: GaugeDeclaration[] = [deliveriesWaiting];
  const gaugesOf = (isShared: boolean): Instrument[] =>
    gauges.filter((gauge) => (gauge.isShared ?? false) === isShared).map(toInstrument);
  const instruments = [
    ...[requests, requestDuration, databaseOperations, databaseDuration, droppedPullEvents, refusals, spans],
    ...[deliveryAttempts, deliveryDuration, deliveryLag, requestsInFlight, damagedBlobs, buildInfo],
  ];
  let created: { readonly own: Registry; readonly shared: Registry } | undefined;
  async function registries({ includeShared }: { readonly includeShared: boolean }): Promise<Registry[]> {
    const { createRegistry, processRegistry } = await loadPrometheus();
    created ??= {
      own: createRegistry([...instruments, ...gaugesOf(false)]),
      shared: createRegistry(gaugesOf(true)),
    };
    return [created.own, ...(includeShared ? [created.shared] : []), processRegistry()];
  }

  return {
    observeRequest(method, wire, code, seconds) {
      requests.labels(method, wire, code).add();
      requestDuration.labels(method, wire).observe(seconds);
    },
    inFlight: {
      enter: () => void requestsRunning++,
      leave: () => void requestsRunning--,
    },
    observeDatabase(operation, outcome, seconds) {
      databaseOperations.labels(operation, outcome).add();
      databaseDuration.labels(operation).observe(seconds);
    },
    countRefusal: (quota) => refusals.labels(quota).add(),
    countSpans: (outcome, count) => spans.labels(outcome).add(count),
    countDamagedBlob: (problem) => damagedBlobs.labels(problem).add(),
    countDroppedPullEvents: (count) => droppedPullEvents.labels().add(count),
    delivery: {
      observe(state, seconds) {
        deliveryAttempts.labels(state === 'pending' ? 'retried' : state).add();
        deliveryDuration.labels().observe(seconds);
      },
      observeLag: (seconds) => deliveryLag.labels().observe(seconds),
      readWaitingFrom(count) {
        countWaiting = count;
      },
    },
    addGauges: (added) => void gauges.push(...added),
    contentType: 'text/plain; version=0.0.4; charset=utf-8',
    async text() {
      const all = await registries({ includeShared: true });
      return (await Promise.all(all.map((registry) => registry.metrics()))).join('');
    },
    async snapshot(options) {
      const all = await registries(options);
      return (await Promise.all(all.map((registry) => registry.getMetricsAsJSON()))).flat();
    },
  };
}

const toInstrument = ({ name, help, aggregator, read }: GaugeDeclaration): Instrument =>
  createGauges(
    { name, help },
    async () => {
      try {
        const value = await read();
        if (value === undefined) return [];
        return typeof value === 'number' ? [{ labels: {}, value }] : value;
      } catch {
        // Without a database, or with one that does not respond, the other metrics are still useful.
        return [];
      }
    },
    aggregator,
  );
