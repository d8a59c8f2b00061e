import type { EventEmitter } from 'node:events';
import { constants } from 'node:os';
import type { Clock } from '../../base/clock.ts';
import type { Log } from '../../base/log.ts';

/** With `npm start`, Ctrl-C arrives twice: from the terminal and from npm. A signal within this time is ignored. */
const DUPLICATE_SIGNAL_MS = 500;

export interface StopOptions {
  readonly stop: () => Promise<void>;
  readonly log: Log;
  readonly clock: Clock;
  /** `process`, except in tests. */
  readonly process: Pick<EventEmitter, 'on'> & { exit(code: number): void };
}

/** Stops gracefully on the first SIGINT or SIGTERM. Exits immediately on the next. */
export function stopOnSignals({ stop, log, clock, process }: StopOptions): void {
  let stoppingSince: number | undefined;
  for (const signal of ['SIGINT', 'SIGTERM'] as const) {
    process.on(signal, () => {
      if (stoppingSince !== undefined) {
        if (clock() - stoppingSince > DUPLICATE_SIGNAL_MS) process.exit(128 + constants.signals[signal]);
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
