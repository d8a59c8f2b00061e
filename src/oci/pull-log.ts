import type { Log } from '../base/log.ts';
import type { Metrics } from '../base/metrics.ts';
import { appendEvent, type OutboxEvent } from '../store/outbox.ts';
import type { Store } from '../store/store.ts';

export interface PullLogOptions {
  readonly store: Store;
  readonly log: Log;
  readonly metrics: Pick<Metrics, 'countDroppedPullEvents'>;
  /** How many may wait for the database. */
  readonly capacity?: number;
  /** How long events wait for others to be written with. */
  readonly gatherMs?: number;
  readonly retryMs?: number;
}

/** Writes events of pulls after their answers are out, many at a time. */
export interface PullLog {
  /** Never waits and never fails; what does not fit is counted. */
  record(event: OutboxEvent): void;
  /** Writes what is waiting, as far as the database takes it. */
  close(): Promise<void>;
}

const CAPACITY = 20_000;
/** Each commit is a sync to the disk, for which everybody waits: one in a second must do. */
const GATHER_MS = 1_000;
/** A transaction keeps other writers waiting, so it stays short. */
const BATCH = 1_000;
const RETRY_MS = 1_000;

export function createPullLog(options: PullLogOptions): PullLog {
  const { store, log, metrics, capacity = CAPACITY, gatherMs = GATHER_MS, retryMs = RETRY_MS } = options;
  let waiting: OutboxEvent[] = [];
  let writing: Promise<void> | undefined;
  let dropped = 0;
  let closing = false;
  let wake = (): void => {};

  async function drain(): Promise<void> {
    await pause(gatherMs);
    while (waiting.length > 0 && (await isWritten(waiting.slice(0, BATCH)))) reportDropped();
    if (waiting.length > 0) giveUp();
    writing = undefined;
  }

  /** However often it takes; false when there is no time left. */
  async function isWritten(batch: readonly OutboxEvent[]): Promise<boolean> {
    for (;;) {
      try {
        await store.write(async (tx) => {
          for (const event of batch) await appendEvent(tx, event);
        });
        waiting = waiting.slice(batch.length);
        return true;
      } catch (error) {
        log.warn({ error, waiting: waiting.length }, 'cannot write events of pulls');
        if (closing) return false;
        await pause(retryMs);
      }
    }
  }

  /** Unless it is time to close. */
  const pause = (ms: number): Promise<void> =>
    new Promise((resolve) => {
      const timer = setTimeout(resolve, ms);
      wake = () => {
        clearTimeout(timer);
        resolve();
      };
    });

  function drop(count: number): void {
    dropped += count;
    metrics.countDroppedPullEvents(count);
  }

  function giveUp(): void {
    drop(waiting.length);
    waiting = [];
    reportDropped();
  }

  /** One line for a burst of them. */
  function reportDropped(): void {
    if (dropped > 0) log.warn({ dropped }, 'events of pulls were lost: they came faster than the database took them');
    dropped = 0;
  }

  return {
    record(event) {
      if (waiting.length >= capacity) return drop(1);
      waiting.push(event);
      writing ??= drain();
    },
    async close() {
      closing = true;
      wake();
      await writing;
    },
  };
}
