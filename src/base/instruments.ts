/*
 * Counters, histograms and gauges that keep plain numbers. The instruments of prom-client take microseconds for each
 * observation, several times per request. So every observation is counted here and only here; prom-client reads the
 * numbers through `Instrument.get` when it formats them or merges those of several processes.
 */

import type { MaybePromise } from './maybe-promise.ts';

/** The part of prom-client's metric interface that its registry calls. */
export interface Instrument {
  readonly name: string;
  get(): Promise<InstrumentSnapshot>;
}

interface InstrumentSnapshot {
  readonly name: string;
  readonly help: string;
  readonly type: 'counter' | 'gauge' | 'histogram';
  readonly aggregator: Aggregator;
  readonly values: readonly (Sample & { readonly metricName?: string })[];
}

/** A value for one combination of label values. */
export interface Sample {
  readonly labels: Readonly<Record<string, string | number>>;
  readonly value: number;
}

/** How prom-client merges the values of several processes. */
export type Aggregator = 'sum' | 'min' | 'max' | 'first';

interface InstrumentOptions {
  readonly name: string;
  readonly help: string;
  /** Empty by default. An instrument without labels has a value from the start. */
  readonly labelNames?: readonly string[];
}

/** The count for one combination of label values. */
export interface Count {
  add(count?: number): void;
}

/** The observations for one combination of label values. */
export interface Observations {
  observe(seconds: number): void;
}

export interface Counter extends Instrument {
  labels(...values: string[]): Count;
}

export interface Histogram extends Instrument {
  labels(...values: string[]): Observations;
}

export function createCounter({ name, help, labelNames = [] }: InstrumentOptions): Counter {
  const { labels, all } = byLabels(labelNames, () => ({
    total: 0,
    add(count = 1) {
      this.total += count;
    },
  }));
  const valuesOf = () =>
    all.map(({ values, value }) => ({ labels: labelRecord(labelNames, values), value: value.total }));
  return { labels, ...instrument({ name, help }, 'counter', 'sum', valuesOf) };
}

interface BucketCounts extends Observations {
  /** The count of each bucket, and last that of the observations above all bounds. */
  readonly counts: number[];
  sum: number;
}

/** `bounds` are the upper bounds of the buckets in ascending order. */
export function createHistogram(
  { name, help, labelNames = [] }: InstrumentOptions,
  bounds: readonly number[],
): Histogram {
  const { labels, all } = byLabels<BucketCounts>(labelNames, () => ({
    counts: Array.from({ length: bounds.length + 1 }, () => 0),
    sum: 0,
    observe(seconds) {
      let bucket = 0;
      while (bucket < bounds.length && seconds > (bounds[bucket] as number)) bucket++;
      this.counts[bucket] = (this.counts[bucket] as number) + 1;
      this.sum += seconds;
    },
  }));
  const valuesOf = () =>
    all.flatMap(({ values, value }) => histogramValues(name, labelRecord(labelNames, values), bounds, value));
  return { labels, ...instrument({ name, help }, 'histogram', 'sum', valuesOf) };
}

/** In the exposition format each bucket includes all smaller ones. */
function histogramValues(
  name: string,
  labels: Readonly<Record<string, string>>,
  bounds: readonly number[],
  { counts, sum }: BucketCounts,
) {
  let total = 0;
  const buckets = counts.map((count, bucket) => {
    total += count;
    return { metricName: `${name}_bucket`, labels: { le: bounds[bucket] ?? '+Inf', ...labels }, value: total };
  });
  return [
    ...buckets,
    { metricName: `${name}_sum`, labels, value: sum },
    { metricName: `${name}_count`, labels, value: total },
  ];
}

/** A number that is read each time the metrics are formatted. */
export function createGauge(
  { name, help }: InstrumentOptions,
  read: () => number | Promise<number>,
  { aggregator = 'sum', labels = {} }: { aggregator?: Aggregator; labels?: Record<string, string> } = {},
): Instrument {
  return instrument({ name, help }, 'gauge', aggregator, async () => [{ labels, value: await read() }]);
}

/** Several numbers of one name, which are read each time the metrics are formatted. */
export const createGauges = (
  { name, help }: InstrumentOptions,
  read: () => MaybePromise<readonly Sample[]>,
  aggregator: Aggregator = 'sum',
): Instrument => instrument({ name, help }, 'gauge', aggregator, read);

const instrument = (
  { name, help }: InstrumentOptions,
  type: InstrumentSnapshot['type'],
  aggregator: Aggregator,
  readValues: () => MaybePromise<InstrumentSnapshot['values']>,
): Instrument => ({
  name,
  get: async () => ({ name, help, type, aggregator, values: await readValues() }),
});

const labelRecord = (names: readonly string[], values: readonly string[]): Record<string, string> =>
  Object.fromEntries(names.map((name, index) => [name, values[index] ?? '']));

type LabelTree<T> = Map<string, T | LabelTree<T>>;

/**
 * One value for each combination of label values, created on first use. The look-up goes label by label through a tree
 * of maps, because a single map would need a new key string for each look-up.
 */
function byLabels<T>(labelNames: readonly string[], createValue: () => T) {
  const all: { readonly values: readonly string[]; readonly value: T }[] = [];
  const create = (values: readonly string[]): T => {
    const value = createValue();
    all.push({ values, value });
    return value;
  };
  if (labelNames.length === 0) {
    const only = create([]);
    return { all, labels: () => only };
  }
  const root: LabelTree<T> = new Map();
  const labels = (...values: string[]): T => {
    let node = root;
    for (let index = 0; index < values.length - 1; index++) node = childOf(node, values[index] as string);
    const last = values.at(-1) as string;
    let value = node.get(last) as T | undefined;
    if (value === undefined) {
      value = create(values);
      node.set(last, value);
    }
    return value;
  };
  return { all, labels };
}

function childOf<T>(node: LabelTree<T>, label: string): LabelTree<T> {
  let child = node.get(label) as LabelTree<T> | undefined;
  if (child === undefined) {
    child = new Map();
    node.set(label, child);
  }
  return child;
}
