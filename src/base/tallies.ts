/** All that a registry of prom-client asks of a metric. */
export interface Metric {
  readonly name: string;
  get(): Promise<Reading>;
}

interface Reading {
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
export interface Count {
  add(count?: number): void;
}

/** One combination of labels that is timed. */
export interface Timing {
  observe(seconds: number): void;
}

interface Facts {
  readonly name: string;
  readonly help: string;
  /** None unless said otherwise; a metric without labels is shown from the start. */
  readonly labelNames?: readonly string[];
}

/**
 * What prom-client offers costs microseconds for each observation, several times per request. These keep plain numbers
 * and put them in its words when somebody looks.
 */
export function countBy(metrics: Metric[], { name, help, labelNames = [] }: Facts): (...labels: string[]) => Count {
  const counts = new Map<string, { n: number; readonly labels: readonly string[] } & Count>();
  const get = async (): Promise<Reading> => ({
    name,
    help,
    type: 'counter',
    aggregator: 'sum',
    values: [...counts.values()].map(({ labels, n }) => ({ labels: named(labelNames, labels), value: n })),
  });
  metrics.push({ name, get });
  return remembered(counts, labelNames, (labels) => ({
    n: 0,
    labels,
    add(count = 1) {
      this.n += count;
    },
  }));
}

interface Buckets extends Timing {
  readonly labels: readonly string[];
  /** How many fell into each bucket, and into none. */
  readonly counts: number[];
  sum: number;
}

/** The same for a histogram. */
export function timeBy(
  metrics: Metric[],
  { name, help, labelNames = [] }: Facts,
  bounds: readonly number[],
): (...labels: string[]) => Timing {
  const timings = new Map<string, Buckets>();
  const get = async (): Promise<Reading> => ({
    name,
    help,
    type: 'histogram',
    aggregator: 'sum',
    values: [...timings.values()].flatMap((timing) => valuesOf(name, labelNames, bounds, timing)),
  });
  metrics.push({ name, get });
  return remembered(timings, labelNames, (labels) => ({
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

const named = (names: readonly string[], values: readonly string[]): Record<string, string> =>
  Object.fromEntries(names.map((name, at) => [name, values[at] ?? '']));

function valuesOf(name: string, labelNames: readonly string[], bounds: readonly number[], timing: Buckets) {
  const labels = named(labelNames, timing.labels);
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
  { name, help }: Facts,
  read: () => number | Promise<number>,
  { aggregator = 'sum', labels = {} }: { aggregator?: Aggregator; labels?: Record<string, string> } = {},
): void {
  const get = async (): Promise<Reading> => ({
    name,
    help,
    type: 'gauge',
    aggregator,
    values: [{ labels, value: await read() }],
  });
  metrics.push({ name, get });
}

/** Each combination of labels once. */
function remembered<T>(
  known: Map<string, T>,
  labelNames: readonly string[],
  make: (labels: readonly string[]) => T,
): (...labels: string[]) => T {
  if (labelNames.length === 0) known.set('', make([]));
  return (...labels) => {
    const key = labels.length === 1 ? (labels[0] as string) : labels.join(' ');
    const found = known.get(key);
    if (found !== undefined) return found;
    const made = make(labels);
    known.set(key, made);
    return made;
  };
}
