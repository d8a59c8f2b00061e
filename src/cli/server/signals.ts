import type { EventEmitter } from 'node:events';
import { constants } from 'node:os';
import type { Clock } from '../../base/clock.ts';
import type { ProcessLog } from '../../base/log.ts';

/** With `npm start`, Ctrl-C arrives twice: from the terminal and from npm. A signal within this time is ignored. */
const DUPLICATE_SIGNAL_MS = 500;

/** How long an exit waits for a reader of the log that is behind. */
const FLUSH_MS = 500;

export interface StopOptions {
  readonly stop: () => Promise<void>;
  /** Called with the first signal: ends the process if the stop takes too long. */
  readonly limitStop: () => void;
  readonly log: ProcessLog;
  readonly clock: Clock;
  /** `process`, except in tests. */
  readonly process: Pick<EventEmitter, 'on'> & { exit(code: number): void };
}

/** Stops gracefully on the first SIGINT or SIGTERM. Exits immediately on the next. */
export function stopOnSignals({ stop, limitStop, log, clock, process }: StopOptions): void {
  let stoppingSince: number | undefined;
  const exit = (code: number): void => void log.flush(FLUSH_MS).then(() => process.exit(code));
  for (const signal of ['SIGINT', 'SIGTERM'] as const) {
    process.on(signal, () => {
      if (stoppingSince !== undefined) {
        if (clock() - stoppingSince > DUPLICATE_SIGNAL_MS) process.exit(128 + constants.signals[signal]);
        return;
      }
      stoppingSince = clock();
      limitStop();
      log.info({ signal }, 'stopping: a second signal ends the server at once');
      stop().then(
        () => exit(0),
        (error: unknown) => {
          log.error({ error }, 'could not stop cleanly');
          exit(1);
        },
      );
    });
  }
}
