import { setTimeout as sleep } from 'node:timers/promises';
import type { Clock } from '../../base/clock.ts';
import type { Log } from '../../base/log.ts';

/** A process that serves, as its supervisor sees it. */
export interface Worker<T> {
  readonly pid: number;
  /** What it says when it serves. Fails with the reason when it cannot start. */
  readonly started: Promise<T>;
  /** Resolves with a word on how it ended. */
  readonly ended: Promise<string>;
  /** Asks it to finish what it does and end. */
  stop(): void;
}

export interface SupervisorOptions<T> {
  readonly count: number;
  readonly fork: () => Worker<T>;
  readonly log: Log;
  readonly clock: Clock;
  /** Waits, unless it is told to stop. */
  readonly pause?: (ms: number, signal: AbortSignal) => Promise<unknown>;
}

export interface Supervisor<T> {
  /** What the first worker said. */
  readonly started: T;
  /** Stops all workers and resolves when the last has ended. */
  stop(): Promise<void>;
}

/** A worker that ends is replaced, ever more slowly if its successors end too before they have served for a while. */
const BACKOFF_MS = { first: 100, longest: 30_000 };
const A_WHILE_MS = 60_000;
const wait = (ms: number, signal: AbortSignal): Promise<unknown> => sleep(ms, undefined, { signal });

/**
 * Keeps workers running that share one port. The first starts alone: it brings the database up to date and makes what
 * only the first start makes, so that the others find it. If that fails there is nobody to serve, and so no supervisor.
 */
export async function superviseWorkers<T>(options: SupervisorOptions<T>): Promise<Supervisor<T>> {
  const { count, fork, log, clock, pause = wait } = options;
  const running = new Set<Worker<T>>();
  const stopping = new AbortController();

  function launch(): Worker<T> {
    const worker = fork();
    running.add(worker);
    void worker.ended.then(() => running.delete(worker));
    return worker;
  }

  /** Sees to it that there is a worker in this place until it is time to stop. */
  async function keep(place: number, first?: Worker<T>): Promise<void> {
    let failures = 0;
    for (let worker = first ?? launch(); ; worker = launch()) {
      const launched = clock();
      void worker.started.then(
        () => log.info({ worker: place, pid: worker.pid }, 'worker serves'),
        () => {},
      );
      const how = await worker.ended;
      if (stopping.signal.aborted) return;
      failures = clock() - launched > A_WHILE_MS ? 1 : failures + 1;
      const delayMs = Math.min(BACKOFF_MS.first * 2 ** (failures - 1), BACKOFF_MS.longest);
      log.error({ worker: place, pid: worker.pid, how, delayMs }, 'worker ended; starting another');
      await pause(delayMs, stopping.signal).catch(() => {});
      if (stopping.signal.aborted) return;
    }
  }

  const first = launch();
  const started = await first.started;
  const kept = Array.from({ length: count }, (_, place) => keep(place, place === 0 ? first : undefined));
  return {
    started,
    async stop() {
      stopping.abort();
      for (const worker of running) worker.stop();
      await Promise.all(kept);
    },
  };
}
