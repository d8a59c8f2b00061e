import { Worker } from 'node:worker_threads';
import type { Log } from '../../base/log.ts';

const ENTRY = new URL('./stop-limit.worker.ts', import.meta.url);

/** Kills this process after `limitMs`, even if its event loop is blocked by then. */
export function startStopLimit(limitMs: number, log: Log): void {
  // The flags of the server process are for its own heap.
  new Worker(ENTRY, { workerData: { limitMs }, execArgv: [] })
    .on('error', (error) => log.warn({ error }, 'cannot limit the time of the stop'))
    .unref();
}
