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
  const counts: ({ n: number; readonly labels: readonly string[] } & Count)[] = [];
  const get = async (): Promise<Reading> => ({
    name,
    help,
    type: 'counter',
    aggregator: 'sum',
    values: counts.map(({ labels, n }) => ({ labels: named(labelNames, labels), value: n })),
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
  const timings: Buckets[] = [];
  const get = async (): Promise<Reading> => ({
    name,
    help,
    type: 'histogram',
    aggregator: 'sum',
    values: timings.flatMap((timing) => valuesOf(name, labelNames, bounds, timing)),
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

/** Each combination of labels once. It is looked for label by label: one key of them all would be a new text each time. */
function remembered<T>(
  known: T[],
  labelNames: readonly string[],
  make: (labels: readonly string[]) => T,
): (...labels: string[]) => T {
  const branches: Branch<T> = new Map();
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

type Branch<T> = Map<string, T | Branch<T>>;

function branchAt<T>(branch: Branch<T>, label: string): Branch<T> {
  let next = branch.get(label) as Branch<T> | undefined;
  if (next === undefined) {
    next = new Map();
    branch.set(label, next);
  }
  return next;
}
