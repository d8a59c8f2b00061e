/** A load does not wait for a batch that takes longer: a next batch starts concurrently. */
const SLOW_BATCH_MS = 20;
const MAX_BATCH = 100;

interface PendingLoad<K, V> {
  readonly key: K;
  resolve(value: V): void;
  reject(error: unknown): void;
}

export interface Batcher<K, V> {
  load(key: K): Promise<V>;
  isIdle(): boolean;
}

/**
 * Batches the loads of one turn of the event loop, and those that arrive while a batch runs. A batch always starts
 * after its loads were called, so that no load returns a value from before its call.
 */
export function createBatcher<K, V>(
  loadBatch: (keys: readonly K[]) => Promise<readonly V[]>,
  now: () => number = () => performance.now(),
): Batcher<K, V> {
  let pending: PendingLoad<K, V>[] = [];
  let running = 0;
  let lastStart = 0;
  let isScheduled = false;

  function schedule(): void {
    if (isScheduled) return;
    isScheduled = true;
    setImmediate(start);
  }

  function start(): void {
    isScheduled = false;
    const batch = pending.length > MAX_BATCH ? pending.splice(0, MAX_BATCH) : pending;
    if (batch === pending) pending = [];
    running++;
    lastStart = now();
    void run(batch);
  }

  async function run(batch: readonly PendingLoad<K, V>[]): Promise<void> {
    try {
      const values = await loadBatch(batch.map(({ key }) => key));
      running--;
      for (const [at, { resolve }] of batch.entries()) resolve(values[at] as V);
    } catch (error) {
      running--;
      for (const { reject } of batch) reject(error);
    }
    if (pending.length > 0) schedule();
  }

  return {
    load: (key) =>
      new Promise((resolve, reject) => {
        pending.push({ key, resolve, reject });
        if (running === 0 || now() - lastStart >= SLOW_BATCH_MS) schedule();
      }),
    isIdle: () => running === 0 && pending.length === 0,
  };
}
