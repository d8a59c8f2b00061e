import type { Log } from '../base/log.ts';
import type { Metrics } from '../base/metrics.ts';
import { appendEvent, type OutboxEvent } from '../store/outbox.ts';
import type { Store } from '../store/store.ts';

export interface PullLogOptions {
  readonly store: Store;
  readonly log: Log;
  readonly metrics: Pick<Metrics, 'countDroppedPullEvents'>;
  /** How many events may wait for the database. */
  readonly capacity?: number;
  /** How long events are collected before they are written together. */
  readonly batchMs?: number;
  readonly retryMs?: number;
}

/** Writes the events of pulls after their responses are sent, in batches. */
export interface PullLog {
  /** Never waits and never fails. Events beyond the capacity are dropped and counted. */
  record(event: OutboxEvent): void;
  /** Writes the events that are waiting. If the database is unavailable, they are dropped. */
  close(): Promise<void>;
}

const CAPACITY = 20_000;
/** Every commit syncs the disk, and other writers wait for that. One per second is acceptable. */
const BATCH_MS = 1_000;
/** Other writers wait while a transaction runs, so it must be short. */
const BATCH_SIZE = 1_000;
const RETRY_MS = 1_000;

export function createPullLog(options: PullLogOptions): PullLog {
  const { store, log, metrics, capacity = CAPACITY, batchMs = BATCH_MS, retryMs = RETRY_MS } = options;
  let waiting: OutboxEvent[] = [];
  let writing: Promise<void> | undefined;
  let dropped = 0;
  let isClosing = false;
  let endPause = (): void => {};

  async function drain(): Promise<void> {
    await pause(batchMs);
    while (waiting.length > 0 && (await isWritten(waiting.slice(0, BATCH_SIZE)))) logDropped();
    if (waiting.length > 0) dropAll();
    writing = undefined;
  }

  /** Retries until the batch is written. Returns false if the log is closed before that. */
  async function isWritten(batch: readonly OutboxEvent[]): Promise<boolean> {
    for (;;) {
      try {
        await store.write(async (tx) => {
          for (const event of batch) await appendEvent(tx, event);
        });
        waiting = waiting.slice(batch.length);
        return true;
      } catch (error) {
        log.warn({ error, waiting: waiting.length }, 'cannot write pull events');
        if (isClosing) return false;
        await pause(retryMs);
      }
    }
  }

  /** `close` ends it early. */
  const pause = (ms: number): Promise<void> =>
    new Promise((resolve) => {
      const timer = setTimeout(resolve, ms);
      endPause = () => {
        clearTimeout(timer);
        resolve();
      };
    });

  function drop(count: number): void {
    dropped += count;
    metrics.countDroppedPullEvents(count);
  }

  function dropAll(): void {
    drop(waiting.length);
    waiting = [];
    logDropped();
  }

  /** One log line for many dropped events. */
  function logDropped(): void {
    if (dropped > 0) log.warn({ dropped }, 'pull events were dropped: the database was slower than the pulls');
    dropped = 0;
  }

  return {
    record(event) {
      if (waiting.length >= capacity) return drop(1);
      waiting.push(event);
      writing ??= drain();
    },
    async close() {
      isClosing = true;
      endPause();
      await writing;
    },
  };
}
