import type { EventEmitter } from 'node:events';
import { constants } from 'node:os';
import type { Clock } from '../../base/clock.ts';
import type { Log } from '../../base/log.ts';

/** Ctrl-C under `npm start` arrives twice, once from the terminal and once passed on by npm; only a later one is meant. */
const ECHO_MS = 500;

export interface StopOptions {
  readonly stop: () => Promise<void>;
  readonly log: Log;
  readonly clock: Clock;
  /** `process`, but for tests. */
  readonly process: Pick<EventEmitter, 'on'> & { exit(code: number): void };
}

/** The first SIGINT or SIGTERM stops gracefully, the next exits at once. */
export function stopOnSignals({ stop, log, clock, process }: StopOptions): void {
  let stoppingSince: number | undefined;
  for (const signal of ['SIGINT', 'SIGTERM'] as const) {
    process.on(signal, () => {
      if (stoppingSince !== undefined) {
        if (clock() - stoppingSince > ECHO_MS) process.exit(128 + constants.signals[signal]);
        return;
      }
      stoppingSince = clock();
      log.info({ signal }, 'stopping: finishing open requests');
      stop().then(
        () => process.exit(0),
        (error: unknown) => {
          log.error({ error }, 'could not stop cleanly');
          process.exit(1);
        },
      );
    });
  }
}
