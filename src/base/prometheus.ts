/** The part of the metrics that needs prom-client. */
import { AggregatorRegistry, Registry } from 'prom-client';
import type { Instrument } from './instruments.ts';
import type { MetricsSnapshot } from './metrics.ts';
import { createProcessMetrics } from './process-metrics.ts';

export function createRegistry(instruments: readonly Instrument[]): Registry {
  const registry = new Registry();
  for (const instrument of instruments) registry.registerMetric(instrument as never);
  return registry;
}

let ofProcess: Registry | undefined;

/** One registry for the process, because prom-client cannot remove its observers. */
export function processRegistry(): Registry {
  ofProcess ??= createProcessMetrics();
  return ofProcess;
}

export const mergeSnapshots = (snapshots: readonly MetricsSnapshot[]): Promise<string> =>
  AggregatorRegistry.aggregate(snapshots as unknown as object[]).metrics();
