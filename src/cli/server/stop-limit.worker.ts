/** Kills the process after a time. It runs in a thread of its own, so that it works while the event loop is blocked. */
import { write } from 'node:fs';
import { workerData } from 'node:worker_threads';

const KILL_DELAY_MS = 100;

const { limitMs } = workerData as { readonly limitMs: number };

setTimeout(() => {
  const fields = { level: 'error', time: new Date().toISOString(), limitMs };
  // Not synchronously: the reader of the log may be what the process waits for.
  write(2, `${JSON.stringify({ ...fields, message: 'could not stop in time: the process is killed' })}\n`, () => {});
  setTimeout(() => process.kill(process.pid, 'SIGKILL'), KILL_DELAY_MS);
}, limitMs);
