import type { Worker } from 'node:cluster';
import { type Metrics, type MetricsSnapshot, mergeSnapshots } from '../../base/metrics.ts';

/**
 * Whoever scrapes the port meets any worker, and counters that jump between those of several are of no use. So the
 * worker that is asked answers for all of them: it asks the supervisor, which asks everybody.
 */
type Message =
  | { readonly metrics: 'wanted by a worker'; readonly id: number }
  | { readonly metrics: 'wanted'; readonly id: number }
  | { readonly metrics: 'one'; readonly id: number; readonly snapshot: MetricsSnapshot }
  | { readonly metrics: 'all'; readonly id: number; readonly snapshots: readonly MetricsSnapshot[] };

/** A worker that is too busy to answer in this time is left out. */
const PATIENCE_MS = 1_000;

const isMessage = (value: unknown): value is Message =>
  typeof value === 'object' && value !== null && 'metrics' in value;

/** In a worker: the metrics of all workers. */
export function metricsOfAll(own: Metrics): Pick<Metrics, 'contentType' | 'text'> {
  const waiting = new Map<number, (snapshots: readonly MetricsSnapshot[]) => void>();
  let asked = 0;
  const say = (message: Message): void => void process.send?.(message);
  process.on('message', (message) => {
    if (!isMessage(message)) return;
    if (message.metrics === 'all') waiting.get(message.id)?.(message.snapshots);
    if (message.metrics === 'wanted') {
      void own.snapshot().then((snapshot) => say({ metrics: 'one', id: message.id, snapshot }));
    }
  });
  return {
    contentType: own.contentType,
    async text() {
      const id = ++asked;
      const snapshots = await within<readonly MetricsSnapshot[]>(2 * PATIENCE_MS, (resolve) => {
        waiting.set(id, resolve);
        say({ metrics: 'wanted by a worker', id });
      });
      waiting.delete(id);
      return mergeSnapshots(snapshots ?? [await own.snapshot()]);
    },
  };
}

/** In the supervisor: passes on what workers ask of each other. */
export function relayMetrics(worker: Worker, all: () => readonly Worker[]): void {
  worker.on('message', async (message: unknown) => {
    if (!isMessage(message) || message.metrics !== 'wanted by a worker') return;
    const found = await Promise.all(all().map(snapshotOf));
    const snapshots = found.filter((snapshot) => snapshot !== undefined);
    if (worker.isConnected()) worker.send({ metrics: 'all', id: message.id, snapshots } satisfies Message);
  });
}

let questions = 0;

async function snapshotOf(worker: Worker): Promise<MetricsSnapshot | undefined> {
  if (!worker.isConnected()) return undefined;
  const id = ++questions;
  let hear = (_message: unknown): void => {};
  const snapshot = await within<MetricsSnapshot>(PATIENCE_MS, (resolve) => {
    hear = (message) => {
      if (isMessage(message) && message.metrics === 'one' && message.id === id) resolve(message.snapshot);
    };
    worker.on('message', hear);
    worker.send({ metrics: 'wanted', id } satisfies Message);
  });
  worker.off('message', hear);
  return snapshot;
}

/** What comes in time, or nothing. */
function within<T>(ms: number, ask: (resolve: (value: T) => void) => void): Promise<T | undefined> {
  return new Promise((resolve) => {
    const timer = setTimeout(() => resolve(undefined), ms);
    ask((value) => {
      clearTimeout(timer);
      resolve(value);
    });
  });
}
