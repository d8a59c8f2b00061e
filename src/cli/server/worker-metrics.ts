import type { Worker } from 'node:cluster';
import { type Metrics, type MetricsSnapshot, mergeSnapshots } from '../../base/metrics.ts';
import { shareResult } from '../../base/share-result.ts';

/**
 * A request for /metrics reaches one of the workers, which must return the sum of all of them. It sends `requestAll` to
 * the supervisor, which sends `request` to each worker, collects their `snapshot` messages and returns them as `all`.
 * One worker is asked to include the shared gauges, which are the same in all of them.
 */
type MetricsMessage =
  | { readonly metrics: 'requestAll'; readonly id: number }
  | { readonly metrics: 'request'; readonly id: number; readonly includeShared: boolean }
  | { readonly metrics: 'snapshot'; readonly id: number; readonly snapshot: MetricsSnapshot }
  | { readonly metrics: 'all'; readonly id: number; readonly snapshots: readonly MetricsSnapshot[] };

/** How long the supervisor uses the snapshots of all workers. */
const SNAPSHOTS_AGE_MS = 1_000;

/** A worker that does not respond in this time is left out. */
const SNAPSHOT_TIMEOUT_MS = 1_000;

const isMetricsMessage = (value: unknown): value is MetricsMessage =>
  typeof value === 'object' && value !== null && 'metrics' in value;

/** Runs in a worker: returns the metrics of all workers. */
export function metricsOfAllWorkers(own: Metrics): Pick<Metrics, 'contentType' | 'text'> {
  const pending = new Map<number, (snapshots: readonly MetricsSnapshot[]) => void>();
  let requests = 0;
  const send = (message: MetricsMessage): void => void process.send?.(message);
  process.on('message', (message) => {
    if (!isMetricsMessage(message)) return;
    if (message.metrics === 'all') pending.get(message.id)?.(message.snapshots);
    if (message.metrics === 'request') {
      const { id, includeShared } = message;
      void own.snapshot({ includeShared }).then((snapshot) => send({ metrics: 'snapshot', id, snapshot }));
    }
  });
  return {
    contentType: own.contentType,
    async text() {
      const id = ++requests;
      const snapshots = await withTimeout<readonly MetricsSnapshot[]>(2 * SNAPSHOT_TIMEOUT_MS, (resolve) => {
        pending.set(id, resolve);
        send({ metrics: 'requestAll', id });
      });
      pending.delete(id);
      return mergeSnapshots(snapshots ?? [await own.snapshot({ includeShared: true })]);
    },
  };
}

/**
 * Runs in the supervisor: returns a function that sends the metrics of all workers to a worker whenever it requests
 * them. Requests of several workers share the snapshots.
 */
export function createMetricsRelay(allWorkers: () => readonly Worker[]): (worker: Worker) => void {
  const snapshotsOfAll = shareResult(async () => {
    const connected = allWorkers().filter((worker) => worker.isConnected());
    const responses = await Promise.all(connected.map((worker, index) => requestSnapshot(worker, index === 0)));
    return responses.filter((snapshot) => snapshot !== undefined);
  }, SNAPSHOTS_AGE_MS);
  return (worker) => {
    worker.on('message', async (message: unknown) => {
      if (!isMetricsMessage(message) || message.metrics !== 'requestAll') return;
      const snapshots = await snapshotsOfAll();
      if (worker.isConnected()) worker.send({ metrics: 'all', id: message.id, snapshots } satisfies MetricsMessage);
    });
  };
}

let snapshotRequests = 0;

async function requestSnapshot(worker: Worker, includeShared: boolean): Promise<MetricsSnapshot | undefined> {
  const id = ++snapshotRequests;
  let onMessage = (_message: unknown): void => {};
  const snapshot = await withTimeout<MetricsSnapshot>(SNAPSHOT_TIMEOUT_MS, (resolve) => {
    onMessage = (message) => {
      if (isMetricsMessage(message) && message.metrics === 'snapshot' && message.id === id) resolve(message.snapshot);
    };
    worker.on('message', onMessage);
    worker.send({ metrics: 'request', id, includeShared } satisfies MetricsMessage);
  });
  worker.off('message', onMessage);
  return snapshot;
}

/** Resolves with undefined when `start` does not resolve in time. */
function withTimeout<T>(ms: number, start: (resolve: (value: T) => void) => void): Promise<T | undefined> {
  return new Promise((resolve) => {
    const timer = setTimeout(() => resolve(undefined), ms);
    start((value) => {
      clearTimeout(timer);
      resolve(value);
    });
  });
}
