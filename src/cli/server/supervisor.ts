import { setTimeout as sleep } from 'node:timers/promises';
import type { Clock } from '../../base/clock.ts';
import type { Log } from '../../base/log.ts';

/** A worker process, as its supervisor sees it. */
export interface Worker<T> {
  readonly pid: number;
  /** Resolves when the worker serves. Rejects with the reason when it cannot start. */
  readonly started: Promise<T>;
  /** Resolves with the signal or the exit code when the worker has ended. */
  readonly ended: Promise<string>;
  /** Requests a graceful stop. */
  stop(): void;
  kill(): void;
}

export interface SupervisorOptions<T> {
  readonly count: number;
  readonly fork: () => Worker<T>;
  readonly log: Log;
  readonly clock: Clock;
  /** After this time, workers that are still stopping are killed. */
  readonly stopLimitMs: number;
  /** Waits, unless the signal aborts. */
  readonly pause?: (ms: number, signal: AbortSignal) => Promise<unknown>;
}

export interface Supervisor<T> {
  /** The result of the first worker's start. */
  readonly started: T;
  /** Stops all workers and resolves when the last has ended. */
  stop(): Promise<void>;
}

/** Delays before a worker is replaced: exponential backoff, reset by a worker that ran long enough. */
const BACKOFF_MS = { first: 100, longest: 30_000 };
const STABLE_AFTER_MS = 60_000;
const wait = (ms: number, signal: AbortSignal): Promise<unknown> => sleep(ms, undefined, { signal });

/**
 * Starts workers and replaces those that end. The first worker starts alone, because it migrates the database and
 * creates the organization and the keys. Rejects when it fails to start.
 */
export async function superviseWorkers<T>(options: SupervisorOptions<T>): Promise<Supervisor<T>> {
  const { count, fork, log, clock, stopLimitMs, pause = wait } = options;
  const running = new Set<Worker<T>>();
  const stopping = new AbortController();

  function launch(): Worker<T> {
    const worker = fork();
    running.add(worker);
    void worker.ended.then(() => running.delete(worker));
    return worker;
  }

  /** Keeps one worker running until the supervisor stops. */
  async function keepRunning(index: number, first?: Worker<T>): Promise<void> {
    let failures = 0;
    for (let worker = first ?? launch(); ; worker = launch()) {
      const launched = clock();
      void worker.started.then(
        () => log.info({ worker: index, pid: worker.pid }, 'worker serves'),
        () => {},
      );
      const how = await worker.ended;
      if (stopping.signal.aborted) return;
      failures = clock() - launched > STABLE_AFTER_MS ? 1 : failures + 1;
      const delayMs = Math.min(BACKOFF_MS.first * 2 ** (failures - 1), BACKOFF_MS.longest);
      log.error({ worker: index, pid: worker.pid, how, delayMs }, 'worker ended; starting another');
      await pause(delayMs, stopping.signal).catch(() => {});
      if (stopping.signal.aborted) return;
    }
  }

  /** For workers whose event loop is blocked, so that they do not even notice the signal. */
  function killRunning(): void {
    for (const worker of running) {
      log.error({ pid: worker.pid }, 'worker could not stop in time: it is killed');
      worker.kill();
    }
  }

  const first = launch();
  const started = await first.started;
  const workers = Array.from({ length: count }, (_, index) => keepRunning(index, index === 0 ? first : undefined));
  return {
    started,
    async stop() {
      stopping.abort();
      for (const worker of running) worker.stop();
      const finished = new AbortController();
      void pause(stopLimitMs, finished.signal).then(killRunning, () => {});
      await Promise.all(workers);
      finished.abort();
    },
  };
}
