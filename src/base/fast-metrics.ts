/** All that a registry of prom-client asks of a metric. */
export interface Metric {
  readonly name: string;
  get(): Promise<MetricSnapshot>;
}

interface MetricSnapshot {
  readonly name: string;
  readonly help: string;
  readonly type: 'counter' | 'gauge' | 'histogram';
  /** How the values of several processes become one. */
  readonly aggregator: Aggregator;
  readonly values: readonly {
    readonly metricName?: string;
    readonly labels: Readonly<Record<string, string | number>>;
    readonly value: number;
  }[];
}

type Aggregator = 'sum' | 'max' | 'first';

/** One combination of labels that is counted. */
export interface Counter {
  add(count?: number): void;
}

/** One combination of labels that is timed. */
export interface Histogram {
  observe(seconds: number): void;
}

interface MetricOptions {
  readonly name: string;
  readonly help: string;
  /** None unless said otherwise; a metric without labels is shown from the start. */
  readonly labelNames?: readonly string[];
}

/**
 * What prom-client offers costs microseconds for each observation, several times per request. These keep plain numbers
 * and put them in its words when somebody looks.
 */
export function counter(
  metrics: Metric[],
  { name, help, labelNames = [] }: MetricOptions,
): (...labels: string[]) => Counter {
  const counts: ({ n: number; readonly labels: readonly string[] } & Counter)[] = [];
  const get = async (): Promise<MetricSnapshot> => ({
    name,
    help,
    type: 'counter',
    aggregator: 'sum',
    values: counts.map(({ labels, n }) => ({ labels: labelsOf(labelNames, labels), value: n })),
  });
  metrics.push({ name, get });
  return byLabels(counts, labelNames, (labels) => ({
    n: 0,
    labels,
    add(count = 1) {
      this.n += count;
    },
  }));
}

interface HistogramValues extends Histogram {
  readonly labels: readonly string[];
  /** How many fell into each bucket, and into none. */
  readonly counts: number[];
  sum: number;
}

/** The same for a histogram. */
export function histogram(
  metrics: Metric[],
  { name, help, labelNames = [] }: MetricOptions,
  bounds: readonly number[],
): (...labels: string[]) => Histogram {
  const timings: HistogramValues[] = [];
  const get = async (): Promise<MetricSnapshot> => ({
    name,
    help,
    type: 'histogram',
    aggregator: 'sum',
    values: timings.flatMap((timing) => histogramValues(name, labelNames, bounds, timing)),
  });
  metrics.push({ name, get });
  return byLabels(timings, labelNames, (labels) => ({
    labels,
    counts: Array.from({ length: bounds.length + 1 }, () => 0),
    sum: 0,
    observe(seconds) {
      let at = 0;
      while (at < bounds.length && seconds > (bounds[at] as number)) at++;
      this.counts[at] = (this.counts[at] as number) + 1;
      this.sum += seconds;
    },
  }));
}

const labelsOf = (names: readonly string[], values: readonly string[]): Record<string, string> =>
  Object.fromEntries(names.map((name, at) => [name, values[at] ?? '']));

function histogramValues(
  name: string,
  labelNames: readonly string[],
  bounds: readonly number[],
  timing: HistogramValues,
) {
  const labels = labelsOf(labelNames, timing.labels);
  let total = 0;
  const buckets = timing.counts.map((count, at) => {
    total += count;
    return { metricName: `${name}_bucket`, labels: { le: bounds[at] ?? '+Inf', ...labels }, value: total };
  });
  return [
    ...buckets,
    { metricName: `${name}_sum`, labels, value: timing.sum },
    { metricName: `${name}_count`, labels, value: total },
  ];
}

/** One number that is asked for when somebody looks. */
export function gauge(
  metrics: Metric[],
  { name, help }: MetricOptions,
  read: () => number | Promise<number>,
  { aggregator = 'sum', labels = {} }: { aggregator?: Aggregator; labels?: Record<string, string> } = {},
): void {
  const get = async (): Promise<MetricSnapshot> => ({
    name,
    help,
    type: 'gauge',
    aggregator,
    values: [{ labels, value: await read() }],
  });
  metrics.push({ name, get });
}

/** Each combination of labels once. It is looked for label by label: one key of them all would be a new text each time. */
function byLabels<T>(
  known: T[],
  labelNames: readonly string[],
  make: (labels: readonly string[]) => T,
): (...labels: string[]) => T {
  const branches: LabelTree<T> = new Map();
  const add = (labels: readonly string[]): T => {
    const made = make(labels);
    known.push(made);
    return made;
  };
  if (labelNames.length === 0) {
    const only = add([]);
    return () => only;
  }
  return (...labels) => {
    let branch = branches;
    for (let at = 0; at < labels.length - 1; at++) branch = branchAt(branch, labels[at] as string);
    const last = labels.at(-1) as string;
    let found = branch.get(last) as T | undefined;
    if (found === undefined) {
      found = add(labels);
      branch.set(last, found);
    }
    return found;
  };
}

type LabelTree<T> = Map<string, T | LabelTree<T>>;

function branchAt<T>(branch: LabelTree<T>, label: string): LabelTree<T> {
  let next = branch.get(label) as LabelTree<T> | undefined;
  if (next === undefined) {
    next = new Map();
    branch.set(label, next);
  }
  return next;
}
