import { Counter, type CounterConfiguration, type Registry } from 'prom-client';

/** One combination of labels that is counted. */
export interface Count {
  add(): void;
}

/** One combination of labels that is timed. */
export interface Timing {
  observe(seconds: number): void;
}

type Facts = Pick<CounterConfiguration<string>, 'name' | 'help'> & {
  readonly labelNames: readonly string[];
};

/**
 * What prom-client offers costs microseconds for each observation, several times per request. These keep plain numbers
 * and put them in its words when somebody looks.
 */
export function countBy(registry: Registry, { name, help, labelNames }: Facts): (...labels: string[]) => Count {
  const counts = new Map<string, { n: number; readonly labels: readonly string[] } & Count>();
  new Counter({
    name,
    help,
    labelNames,
    registers: [registry],
    collect() {
      this.reset();
      for (const { labels, n } of counts.values()) this.labels(...labels).inc(n);
    },
  });
  return remembered(counts, (labels) => ({
    n: 0,
    labels,
    add() {
      this.n++;
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
  registry: Registry,
  { name, help, labelNames }: Facts,
  bounds: readonly number[],
): (...labels: string[]) => Timing {
  const timings = new Map<string, Buckets>();
  const get = async () => ({
    name,
    help,
    type: 'histogram',
    aggregator: 'sum',
    values: [...timings.values()].flatMap((timing) => valuesOf(name, labelNames, bounds, timing)),
  });
  // All that a registry asks of a metric is its name and this.
  registry.registerMetric({ name, get } as never);
  return remembered(timings, (labels) => ({
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

function valuesOf(name: string, labelNames: readonly string[], bounds: readonly number[], timing: Buckets) {
  const labels = Object.fromEntries(labelNames.map((label, at) => [label, timing.labels[at] ?? '']));
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

/** Each combination of labels once. */
function remembered<T>(known: Map<string, T>, make: (labels: readonly string[]) => T): (...labels: string[]) => T {
  return (...labels) => {
    const key = labels.length === 1 ? (labels[0] as string) : labels.join(' ');
    const found = known.get(key);
    if (found !== undefined) return found;
    const made = make(labels);
    known.set(key, made);
    return made;
  };
}
